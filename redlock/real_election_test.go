package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_election_those_who_observe_see_every_leader_in_order(t *testing.T) {
	masters := startMasters(t, 5)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := make(chan redlock.Leader)
	go func() {
		for leader := range masters.client(t).Election("boss").Observe(within) {
			seen <- leader
		}
	}()
	var token uint64
	for i := range 3 {
		e := masters.client(t).Election("boss")
		lease, err := e.Campaign(within, fmt.Sprint("term ", i))
		if err != nil {
			t.Fatal(err)
		}
		leader := arrival(t, "a new leader", seen)
		if leader.Value != fmt.Sprint("term ", i) || leader.Token <= token || leader.Token != lease.Token() {
			t.Errorf("saw %+v after token %d, want term %d with token %d", leader, token, i, lease.Token())
		}
		token = leader.Token
		if err := e.Proclaim(within, lease, "moved"); err != nil {
			t.Fatal(err)
		}
		if leader := arrival(t, "what the leader says", seen); leader.Value != "moved" || leader.Token != token {
			t.Errorf("saw %+v, want the same leader with another text", leader)
		}
		if err := lease.Unlock(within); err != nil {
			t.Fatal(err)
		}
		mustBe(t, e.Proclaim(within, lease, "gone"), redlock.ErrUnlocked)
		_, err = e.Leader(within)
		mustBe(t, err, redlock.ErrNoLeader)
	}
}

// L53: the lease of a leader is at a majority, and one master of that has a higher counter,
// because it granted late. Who leads is known all the same.
func TestReal_L53_a_leader_is_seen_while_a_master_with_a_higher_counter_is_needed(t *testing.T) {
	t.Parallel()
	for away := range 2 {
		masters := startMasters(t, 3)
		e := masters.client(t).Election("boss")
		lease, err := e.Campaign(ctx, "me")
		noError(t, err)
		eventually(t, "all masters store it", func() bool {
			return !slices.Contains(masters.values(t, "boss"), "")
		})
		do(t, masters[2], "SET", "redlock:token:boss", lease.Token()+50, "KEEPTTL")
		observer := masters.client(t).Election("boss")
		masters[away].Stop()

		leader, err := observer.Leader(ctx)

		noError(t, err)
		if leader.Value != "me" || leader.Token != lease.Token() {
			t.Errorf("%+v; want the leader with token %d", leader, lease.Token())
		}
		for leader := range observer.Observe(ctx) {
			if leader.Value != "me" || leader.Token != lease.Token() {
				t.Errorf("observed %+v; want the leader with token %d", leader, lease.Token())
			}
			break
		}
		masters[away].Continue()
	}
}

func TestReal_election_of_a_closed_client_is_observed_no_more(t *testing.T) {
	c := startMasters(t, 3).client(t)
	c.Close()
	over := make(chan bool)
	go func() {
		for range c.Election("boss").Observe(ctx) {
		}
		close(over)
	}()
	arrival(t, "the end", over)
}

// What a leader says later may arrive before what it said earlier.
func TestReal_election_an_earlier_word_does_not_come_after_a_later_one(t *testing.T) {
	masters := startMasters(t, 1)
	c := masters.client(t)
	e := c.Election("boss")
	lease, err := e.Campaign(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	far := time.Now().Add(time.Hour).UnixMicro()
	do(t, masters[0], "HSET", "redlock:leader:boss", "leader", lease.Value(), "number", far, "text", "last")

	early := wire.LeadershipOf("", "boss").Proclaim(lease.Value(), "5", "early", time.Minute)
	do(t, masters[0], "EVAL", early.Script.Source, 2, early.Keys[0], early.Keys[1],
		early.Args[0], early.Args[1], early.Args[2], early.Args[3], early.Args[4])

	if leader, err := e.Leader(ctx); err != nil || leader.Value != "last" || leader.Number != far {
		t.Errorf("%+v, %v", leader, err)
	}
}

func TestReal_election_bad_input_is_named(t *testing.T) {
	c := startMasters(t, 1).client(t)
	e := c.Election("boss")
	lease, err := e.Campaign(ctx, "here")
	if err != nil {
		t.Fatal(err)
	}
	mine := lock(t, c.Mutex("mine"))
	mustName(t, e.Proclaim(ctx, mine, "x"), []string{"boss", "not of this election"})
	mustName(t, e.Proclaim(ctx, nil, "x"), []string{"boss", "not of this election"})
	mustName(t, e.Proclaim(ctx, lease, "\xff"), []string{`"\xff"`, "UTF-8"})
	mustName(t, e.Proclaim(ctx, lease, strings.Repeat("x", 1025)), []string{"1025 bytes", "at most 1024"})
	_, err = e.Campaign(ctx, strings.Repeat("x", 1025))
	mustName(t, err, []string{"1025 bytes", "at most 1024"})
}
