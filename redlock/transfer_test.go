package redlock_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// candidate campaigns for "boss", and sends the lease by which it leads.
func candidate(t testing.TB, c *redlock.Client) <-chan *redlock.Lease {
	led := make(chan *redlock.Lease, 1)
	limited, cancel := context.WithTimeout(ctx, 2*patience)
	t.Cleanup(cancel)
	go func() {
		if lease, err := c.Election("boss").Campaign(limited, "here"); err == nil {
			led <- lease
		}
	}()
	return led
}

// leads campaigns where nobody leads.
func campaigns(t testing.TB, c *redlock.Client) *redlock.Lease {
	t.Helper()
	return arrival(t, "the first leader", candidate(t, c))
}

// awaitCandidates waits until these clients are queued, in this order.
func awaitCandidates(t testing.TB, c *redlock.Client, want ...string) {
	t.Helper()
	eventually(t, "the candidates are queued", func() bool {
		h, err := c.Inspect(ctx, "boss")
		var ids []string
		for _, w := range h.Queue {
			ids = append(ids, w.Client)
		}
		return err == nil && strings.Join(ids, " ") == strings.Join(want, " ")
	})
}

func TestTransfer_the_chosen_client_leads_and_the_others_wait_on(t *testing.T) {
	client, masters := redlocktest.New(t, redlock.WithRetryInterval(time.Hour))
	old := campaigns(t, client)
	ann := candidate(t, masters.Client(redlock.WithClientID("ann")))
	awaitCandidates(t, client, "ann")
	bob := candidate(t, masters.Client(redlock.WithClientID("bob")))
	awaitCandidates(t, client, "ann", "bob")

	if err := client.Election("boss").Transfer(ctx, old, "bob"); err != nil {
		t.Fatal(err)
	}

	lease := arrival(t, "bob leads", bob)
	mustBe(t, old.Err(), redlock.ErrUnlocked)
	if lease.Token() <= old.Token() {
		t.Errorf("token %d after %d", lease.Token(), old.Token())
	}
	awaitCandidates(t, client, "ann")
	unlocks(t, lease)
	unlocks(t, arrival(t, "ann leads", ann))
}

func TestTransfer_to_a_client_that_waits_twice_makes_its_first_campaign_lead(t *testing.T) {
	client, masters := redlocktest.New(t, redlock.WithRetryInterval(time.Hour))
	old := campaigns(t, client)
	ann := redlock.WithClientID("ann") // of two processes
	first := candidate(t, masters.Client(ann))
	awaitCandidates(t, client, "ann")
	second := candidate(t, masters.Client(ann))
	awaitCandidates(t, client, "ann", "ann")

	if err := client.Election("boss").Transfer(ctx, old, "ann"); err != nil {
		t.Fatal(err)
	}

	lease := arrival(t, "the first leads", first)
	if len(second) > 0 {
		t.Error("the second leads, too")
	}
	unlocks(t, lease)
	unlocks(t, arrival(t, "the second leads", second))
}

func TestTransfer_to_a_client_that_does_not_wait_names_those_who_do(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := campaigns(t, client)
	boss := client.Election("boss")
	err := boss.Transfer(ctx, lease, "bob")
	mustBe(t, err, redlock.ErrNotQueued)
	mustName(t, err, []string{"boss", `"bob"`, "nobody waits"})

	ann := candidate(t, masters.Client(redlock.WithClientID("ann")))
	awaitCandidates(t, client, "ann")
	err = boss.Transfer(ctx, lease, "bob")

	mustBe(t, err, redlock.ErrNotQueued)
	mustName(t, err, []string{"boss", `"bob"`, "ann"})
	if !lease.Valid() {
		t.Error("the leader does not lead any more")
	}
	unlocks(t, lease)
	unlocks(t, arrival(t, "ann leads", ann))
}

func TestTransfer_names_at_most_twenty_of_those_who_wait_each_once(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		lease, err := c.Election("boss").Campaign(ctx, "here")
		told <- cmp.Or(err, c.Election("boss").Transfer(ctx, lease, "bob"))
		return lease, err
	})
	campaign := questions(t, masters, wire.OpAcquire)
	queue := []any{[]byte("0"), []byte("w p0/bcd/1:0")} // the first one waits twice
	for i := range 23 {
		queue = append(queue, fmt.Append(nil, i+1), fmt.Appendf(nil, "w p%d/bcd/2:0", i))
	}
	found := wire.Reply{Value: []any{[]byte(campaign[0].cmd.Args[0]), int64(1000), int64(7), int64(24), int64(0), nil, nil, queue}}
	for _, q := range campaign {
		q.answer(wire.Reply{Value: int64(7)})
	}
	for _, answer := range []wire.Reply{{}, found} { // to the announcement, and to the look at the queue
		for _, q := range questions(t, masters, wire.OpRead) {
			q.answer(answer)
		}
	}

	err := arrival(t, "the error", told)

	mustBe(t, err, redlock.ErrNotQueued)
	mustName(t, err, []string{"those who wait are p0, p1, p2, ", "p18, p19, and 3 more"})
}

func TestTransfer_refuses_bad_input_before_it_asks(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease, mine := campaigns(t, client), lock(t, client.Mutex("mine"))
	boss := client.Election("boss")
	mustName(t, boss.Transfer(ctx, nil, "bob"), []string{"boss", "not of this election"})
	mustName(t, boss.Transfer(ctx, mine, "bob"), []string{"boss", "not of this election"})
	mustName(t, masters.Client().Election("boss").Transfer(ctx, lease, "bob"), []string{"boss", "not of this election"})
	mustName(t, boss.Transfer(ctx, lease, ""), []string{"client id", "must not be empty"})
	masters.LoseQuorum()
	mustBe(t, boss.Transfer(ctx, lease, "bob"), redlock.ErrNoQuorum)
	masters.Heal()
	if !lease.Valid() {
		t.Error("the leader does not lead any more")
	}
	unlocks(t, mine)
	unlocks(t, lease)
	mustBe(t, boss.Transfer(ctx, lease, "bob"), redlock.ErrUnlocked)
}

// What nested calls hold does not end by a Transfer: then two would lead.
func TestTransfer_refuses_a_lease_that_nested_calls_hold_too(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := campaigns(t, client)
	bob := candidate(t, masters.Client(redlock.WithClientID("bob")))
	awaitCandidates(t, client, "bob")
	inner, err := client.Mutex("boss", redlock.Fenced(), redlock.Reentrant()).Lock(lease.Context())
	if err != nil {
		t.Fatal(err)
	}

	err = client.Election("boss").Transfer(ctx, lease, "bob")

	mustBe(t, err, redlock.ErrNested)
	mustName(t, err, []string{`transfer "boss"`, "2 holds"})
	if !lease.Valid() || lease.Holds() != 2 {
		t.Errorf("valid: %v, %d holds, want a valid lease with 2", lease.Valid(), lease.Holds())
	}
	if err := inner.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := client.Election("boss").Transfer(ctx, lease, "bob"); err != nil {
		t.Fatal(err)
	}
	next := arrival(t, "bob leads", bob)
	mustBe(t, lease.Err(), redlock.ErrUnlocked)
	next.Release()
}

func TestTransfer_refuses_a_lease_that_is_of_no_election(t *testing.T) {
	for kind, lock := range map[string]func(c *redlock.Client) (*redlock.Lease, error){
		"mutex": func(c *redlock.Client) (*redlock.Lease, error) { return c.Mutex("boss").TryLock(ctx) },
		"kept": func(c *redlock.Client) (*redlock.Lease, error) {
			return c.Mutex("boss", redlock.Fenced(), redlock.AtLeast(5*time.Second)).TryLock(ctx)
		},
		"semaphore": func(c *redlock.Client) (*redlock.Lease, error) {
			return c.Semaphore("boss", 1, redlock.Fenced()).TryAcquire(ctx, 1)
		},
		"writer": func(c *redlock.Client) (*redlock.Lease, error) { return c.RWMutex("boss").TryLock(ctx) },
	} {
		t.Run(kind, func(t *testing.T) {
			client, masters := redlocktest.New(t)
			lease, err := lock(client)
			if err != nil {
				t.Fatal(err)
			}
			mustBe(t, client.Election("boss").Transfer(ctx, lease, "bob"), redlock.ErrNotHeld)
			mustBe(t, client.Election("boss").Proclaim(ctx, lease, "here"), redlock.ErrNotHeld)
			if !lease.Valid() {
				t.Errorf("the lease has ended: %v", lease.Err())
			}
			lease.Release()
			masters.Expire("boss")
		})
	}
}
