package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// leads is what a master answers when it is asked who leads.
type leads struct {
	lease         string
	left, counter int64
	number, says  string
}

func (l leads) reply() wire.Reply {
	return wire.Reply{Value: []any{[]byte(l.lease), l.left, l.counter, []byte(l.number), []byte(l.says)}}
}

// alike is the answers of masters that store one lease, with these counters.
func alike(lease string, counters ...int64) (all []leads) {
	for _, c := range counters {
		all = append(all, leads{lease: lease, left: 900, counter: c})
	}
	return all
}

// The table of who leads, by the answers of five masters to one look or two: a second one
// follows where no majority has the same counter (L53).
func TestL53_leader_by_the_answers_of_masters(t *testing.T) {
	seconds := func(s ...int64) (all []leads) {
		for _, left := range s {
			all = append(all, leads{lease: "a", left: 1000 * left, counter: 7})
		}
		return all
	}
	for name, c := range map[string]struct {
		first, second []leads // those that are missing fail
		want          redlock.Leader
		err           error
	}{
		"a majority has the counter":    {first: alike("a", 7, 9, 7, 9, 7), want: redlock.Leader{Token: 7}},
		"then a majority has it":        {first: alike("a", 7, 8, 9, 10, 11), second: alike("a", 8, 9, 9, 9, 10), want: redlock.Leader{Token: 9}},
		"no majority has it for long":   {first: alike("a", 9, 8, 7, 10), second: alike("a", 9, 8, 7, 10), want: redlock.Leader{Token: 7}},
		"another lease meanwhile":       {first: alike("a", 7, 8, 9, 10), second: alike("b", 9, 8, 7, 10), err: redlock.ErrNoQuorum},
		"another, with its counter":     {first: alike("a", 7, 8, 9, 10), second: alike("b", 9, 9, 9, 10), want: redlock.Leader{Token: 9}},
		"no leader any more":            {first: alike("a", 7, 8, 9, 10), second: alike("", 9, 9, 9, 9), err: redlock.ErrNoLeader},
		"no quorum any more":            {first: alike("a", 7, 8, 9, 10), second: alike("a", 9, 9), err: redlock.ErrNoQuorum},
		"no quorum":                     {first: alike("a", 7, 7), err: redlock.ErrNoQuorum},
		"no leader":                     {first: alike("", 7, 7, 7, 7), err: redlock.ErrNoLeader},
		"no majority has a lease":       {first: append(alike("a", 7, 7), alike("b", 7, 7)...), err: redlock.ErrNoLeader},
		"other leases do not count":     {first: append(alike("b", 9, 9), alike("a", 7, 7, 7)...), want: redlock.Leader{Token: 7}},
		"as long as a majority lasts":   {first: seconds(5, 9, 2, 8, 1), want: redlock.Leader{Token: 7, Remaining: 5 * time.Second}},
		"of three, as long as all last": {first: seconds(5, 9, 8), want: redlock.Leader{Token: 7, Remaining: 5 * time.Second}},
		"a lost counter says nothing":   {first: alike("a", 0, 7, 0, 7, 7), want: redlock.Leader{Token: 7}},
		"nor of too few others":         {first: alike("a", 0, 7, 7), err: redlock.ErrNoQuorum}, // L64
		"nobody has ever led":           {first: alike("", 0, 0, 0), err: redlock.ErrNoLeader},
		"what it said last": {first: append(alike("a", 7, 7), leads{"a", 900, 7, "3", "third"}, leads{"a", 900, 7, "2", "second"}, leads{"b", 900, 7, "4", "of another"}),
			want: redlock.Leader{Token: 7, Number: 3, Value: "third"}},
	} {
		t.Run(name, func(t *testing.T) {
			mocked := clock.NewMock()
			type answer struct {
				redlock.Leader
				err error
			}
			told := make(chan answer, 1)
			masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				leader, err := c.Election("e").Leader(ctx)
				told <- answer{leader, err}
				return nil, redlock.ErrTaken
			}, redlock.WithClock(mocked))
			answerLooks(t, masters, mocked, c.first, c.second)
			got := arrival(t, "the leader", told)
			if c.want.Remaining == 0 {
				got.Remaining = 0
			}
			if !errors.Is(got.err, c.err) || got.Leader != c.want {
				t.Errorf("%+v, %v; want %+v, %v", got.Leader, got.err, c.want, c.err)
			}
		})
	}
}

// A master that grants late may still have the counter of the leader before. That is not the
// token of the new leader: an observer would take it for the one that it has seen.
func TestL69_an_observer_sees_a_new_leader_beside_a_late_master_with_the_token_of_the_one_before(t *testing.T) {
	mocked := clock.NewMock()
	seen := make(chan redlock.Leader, 2)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		for leader := range c.Election("e").Observe(ctx) {
			seen <- leader
		}
		return nil, redlock.ErrTaken
	}, redlock.WithClock(mocked), redlock.WithTTL(time.Second))

	old, late := alike("a", 7, 7, 7), alike("b", 9, 8, 7, 6)
	answerLooks(t, masters, mocked, old, late, late)

	for _, want := range []uint64{7, 8} {
		if got := arrival(t, "the leader", seen); got.Token != want {
			t.Errorf("saw %+v, want the token %d", got, want)
		}
	}
}

// An observer passes over what has no higher number than what it has seen.
func TestProclaim_each_has_a_higher_number_though_the_clock_stands_still(t *testing.T) {
	stands := clock.NewMock()
	stands.Add(time.Hour)
	client, _ := redlocktest.New(t, redlock.WithClock(stands))
	lease := campaigns(t, client)
	last := int64(0)
	for _, said := range []string{"first", "second", "third"} {
		if err := client.Election("boss").Proclaim(ctx, lease, said); err != nil {
			t.Fatal(err)
		}
		leader, err := client.Election("boss").Leader(ctx)
		if err != nil || leader.Value != said || leader.Number <= last {
			t.Errorf("%+v, %v; want %q with a number above %d", leader, err, said, last)
		}
		last = leader.Number
	}
	unlocks(t, lease)
}

func TestProclaim_of_a_leader_whose_lease_the_masters_have_not_says_that_it_is_lost(t *testing.T) {
	client, masters := redlocktest.New(t, redlock.WithTTL(time.Hour))
	lease := campaigns(t, client)
	masters.Expire("boss")

	mustBe(t, client.Election("boss").Proclaim(ctx, lease, "elsewhere"), redlock.ErrLost)

	lease.Release()
}

func TestProclaim_takes_values_of_up_to_1024_bytes(t *testing.T) {
	client, _ := redlocktest.New(t)
	lease := campaigns(t, client)
	boss, longest := client.Election("boss"), strings.Repeat("x", 1024)
	if err := boss.Proclaim(ctx, lease, longest); err != nil {
		t.Error(err)
	}

	mustName(t, boss.Proclaim(ctx, lease, longest+"x"), []string{"1025 bytes", "at most 1024"})

	if leader, err := boss.Leader(ctx); err != nil || leader.Value != longest {
		t.Errorf("%+v, %v", leader, err)
	}
	unlocks(t, lease)
}

// The masters tell: whoever observes asks by itself only three times in a TTL.
func TestObserve_sees_the_next_leader_though_its_own_next_look_is_far(t *testing.T) {
	client, masters := redlocktest.New(t)
	observer := masters.Client(redlock.WithTTL(time.Hour))
	within, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	seen := make(chan redlock.Leader, 2)
	go func() {
		for leader := range observer.Election("boss").Observe(within) {
			seen <- leader
		}
	}()
	first := campaigns(t, client)
	if leader := arrival(t, "the first leader", seen); leader.Token != first.Token() {
		t.Errorf("saw %+v, want the token %d", leader, first.Token())
	}
	unlocks(t, first)

	second := campaigns(t, client)

	if leader := arrival(t, "the next leader", seen); leader.Token != second.Token() {
		t.Errorf("saw %+v, want the token %d", leader, second.Token())
	}
	unlocks(t, second)
}

// answerLooks answers one look of an observer after another. The masters that have no answer fail.
func answerLooks(t *testing.T, masters []*scripted, mocked *clock.Mock, looks ...[]leads) {
	t.Helper()
	for look, answers := range looks {
		if answers == nil {
			return
		}
		if look > 0 {
			eventually(t, "the next look", func() bool {
				masters[0].mu.Lock()
				asked := len(masters[0].open) > 0
				masters[0].mu.Unlock()
				if !asked {
					mocked.Add(10 * time.Millisecond)
				}
				return asked
			})
		}
		for i, m := range masters {
			reply := wire.Reply{Err: &wire.Error{Err: errors.New("is not there")}}
			if i < len(answers) {
				reply = answers[i].reply()
			}
			m.next(t, wire.OpRead).answer(reply)
		}
	}
}
