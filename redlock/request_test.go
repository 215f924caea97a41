package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// asks requests the release of a lock.
func asks(t *testing.T, c *redlock.Client, name, reason string) {
	t.Helper()
	if err := c.RequestRelease(ctx, name, reason); err != nil {
		t.Error(err)
	}
}

// mustHear receives the request with that reason, which is there by now.
func mustHear(t *testing.T, from <-chan redlock.Request, client, reason string) {
	t.Helper()
	select {
	case got := <-from:
		if want := (redlock.Request{Client: client, Reason: reason}); got != want {
			t.Errorf("heard %+v, want %+v", got, want)
		}
	default:
		t.Errorf("heard nothing, want %q", reason)
	}
}

// mustHearNothing receives no request.
func mustHearNothing(t *testing.T, from <-chan redlock.Request) {
	t.Helper()
	select {
	case got := <-from:
		t.Errorf("heard %+v, want nothing", got)
	default:
	}
}

func TestRequestRelease_is_delivered_to_the_holder_who_keeps_the_lock(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client.Mutex("orders"))
	requests := lease.Requested()

	asks(t, masters.Client(redlock.WithClientID("ann")), "orders", "a new version\nis rolled out")

	mustHear(t, requests, "ann", "a new version\nis rolled out")
	mustHearNothing(t, requests)
	if !lease.Valid() || lease.Requested() != requests {
		t.Errorf("%v, or another channel", lease)
	}
	unlocks(t, lease)
}

func TestRequestRelease_the_last_request_counts(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client.Mutex("orders"))
	requests := lease.Requested()
	other := masters.Client(redlock.WithClientID("ann"))

	asks(t, other, "orders", "first")
	asks(t, other, "orders", "second") // nobody has received the first

	mustHear(t, requests, "ann", "second")
	asks(t, other, "orders", "third")
	mustHear(t, requests, "ann", "third")
	mustHearNothing(t, requests)
	unlocks(t, lease)
}

func TestRequestRelease_is_delivered_to_a_holder_who_wants_to_know_later(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client.Mutex("orders"))

	asks(t, masters.Client(redlock.WithClientID("ann")), "orders", "earlier")

	mustHear(t, lease.Requested(), "ann", "earlier")
	unlocks(t, lease)
}

func TestRequestRelease_is_not_delivered_to_a_later_holder(t *testing.T) {
	client, masters := redlocktest.New(t)
	first := lock(t, client.Mutex("orders"))
	heard := first.Requested()
	asks(t, masters.Client(), "orders", "for the first")
	unlocks(t, first)

	second := lock(t, client.Mutex("orders"))

	mustHearNothing(t, second.Requested())
	if len(heard) != 1 {
		t.Error("the first has not heard")
	}
	unlocks(t, second)
}

func TestRequestRelease_of_what_nobody_holds(t *testing.T) {
	client, masters := redlocktest.New(t)
	mustBe(t, client.RequestRelease(ctx, "orders", ""), redlock.ErrNotHeld)

	unlocks(t, lock(t, client.Mutex("orders", redlock.AtLeast(20*time.Second)))) // it is kept

	mustBe(t, client.RequestRelease(ctx, "orders", ""), redlock.ErrNotHeld)
	if _, err := client.ForceUnlock(ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	lease := lock(t, client.Mutex("orders"))
	masters.LoseQuorum()
	mustBe(t, client.RequestRelease(ctx, "orders", ""), redlock.ErrNoQuorum)
	masters.Heal()
	lease.Unlock(ctx)
}

func TestRequestRelease_refuses_bad_input_before_it_asks(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	mustName(t, c.RequestRelease(ctx, "", "x"), []string{"lock name", "must not be empty"})
	mustName(t, c.RequestRelease(ctx, "redlock:x", "x"), []string{"redlock:x", "must not begin with"})
	mustName(t, c.RequestRelease(ctx, "orders", "\xff"), []string{"reason", `"\xff"`, "UTF-8"})
	mustName(t, c.RequestRelease(ctx, "orders", strings.Repeat("x", 1025)), []string{"reason", "1025 bytes", "at most 1024"})
	c.Close()
	mustBe(t, c.RequestRelease(ctx, "orders", "x"), redlock.ErrClosed)
	if ran := ms.nodes[0].ran(); len(ran) != 0 {
		t.Errorf("the master ran %q", ran)
	}
}

func TestRequestRelease_a_message_that_is_lost_is_made_up_for_by_the_next_renewal(t *testing.T) {
	ms := fiveMasters(t)
	holder, links := ms.client()
	other, _ := ms.client(redlock.WithClientID("ann"))
	lease := mustLock(t, holder.Mutex("orders"))
	requests := lease.Requested()
	for _, l := range links {
		l.deaf.Store(true)
	}

	asks(t, other, "orders", "please")

	mustHearNothing(t, requests)
	ms.pass(second / 2)
	mustHear(t, requests, "ann", "please")
	ms.pass(second)
	mustHearNothing(t, requests)
	lease.Unlock(ctx)
}

// The holder reads a request with its next renewal at the latest, which may come later than the TTL of
// who asks.
func TestRequestRelease_lasts_until_a_holder_with_a_longer_TTL_renews(t *testing.T) {
	ms := fiveMasters(t)
	holder, links := ms.client(redlock.WithTTL(20 * second))
	other, _ := ms.client(redlock.WithClientID("ann"))
	lease := mustLock(t, holder.Mutex("orders"))
	ms.pass(2 * second) // its first renewal comes early
	requests := lease.Requested()
	for _, l := range links {
		l.deaf.Store(true)
	}

	asks(t, other, "orders", "please")

	ms.pass(2 * second) // twice the TTL of who asks
	mustHearNothing(t, requests)
	ms.pass(8 * second)
	mustHear(t, requests, "ann", "please")
	lease.Unlock(ctx)
}

// The same for those who share a lock: what they have is no key of its own.
func TestRequestRelease_lasts_as_long_as_a_share_without_a_renewal(t *testing.T) {
	for name, take := range map[string]take{
		"reader": func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.RWMutex("orders").RLock(ctx)
		},
		"permit": func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.Semaphore("orders", 2).Acquire(ctx, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			mocked := clock.NewMock()
			client, masters := redlocktest.New(t, redlock.WithClock(mocked), redlock.WithTTL(20*second))
			lease, err := take(ctx, client)
			if err != nil {
				t.Fatal(err)
			}
			asks(t, masters.Client(redlock.WithClock(mocked), redlock.WithClientID("ann"), redlock.WithTTL(2*second)), "orders", "please")

			mocked.Add(4 * second) // twice the TTL of who asks

			mustHear(t, lease.Requested(), "ann", "please")
			unlocks(t, lease)
		})
	}
}

func TestRequestRelease_takes_a_reason_of_1024_bytes(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client.Mutex("orders"))
	longest := strings.Repeat("x", 1024)

	asks(t, masters.Client(redlock.WithClientID("ann")), "orders", longest)

	mustHear(t, lease.Requested(), "ann", longest)
	unlocks(t, lease)
}

func TestRequestRelease_is_delivered_once_though_the_masters_tell_of_it_one_after_the_other(t *testing.T) {
	ms := fiveMasters(t)
	holder, links := ms.client()
	other, _ := ms.client(redlock.WithClientID("ann"))
	lease := mustLock(t, holder.Mutex("orders"))
	requests := lease.Requested()
	for _, l := range links[:3] {
		l.deaf.Store(true)
	}
	asks(t, other, "orders", "please")
	mustHear(t, requests, "ann", "please")

	ms.pass(second) // a renewal reads it at all five

	mustHearNothing(t, requests)
	lease.Unlock(ctx)
}

// A client whose clock is ahead has asked before.
func TestL70_a_request_reaches_the_holder_whatever_its_number(t *testing.T) {
	ms := fiveMasters(t)
	holder, _ := ms.client()
	ahead, _ := ms.client(redlock.WithClock(shifted{ms.clk, time.Hour}))
	other, _ := ms.client(redlock.WithClientID("ann"))
	lease := mustLock(t, holder.Mutex("orders"))
	requests := lease.Requested()
	asks(t, ahead, "orders", "first")
	<-requests

	asks(t, other, "orders", "please") // these masters let it take the place of the first

	mustHear(t, requests, "ann", "please")
	ms.pass(second)
	mustHearNothing(t, requests)
	lease.Unlock(ctx)
}

// Each of these is a request number that a master comes to store: it tells the holder at once.
func TestL77_the_last_request_counts_whichever_master_tells_when(t *testing.T) {
	type told struct {
		master int
		number int64
	}
	for why, all := range map[string][]told{
		"one master tells of both late":               {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {0, 1}, {0, 2}},
		"one master tells of the first, first":        {{2, 1}, {1, 1}, {1, 2}, {0, 1}, {2, 2}},
		"one master has missed the last":              {{1, 2}, {2, 2}, {0, 1}},
		"it tells before a majority has":              {{1, 2}, {0, 1}, {2, 2}},
		"one master has one with a higher number":     {{0, 9}, {1, 2}, {2, 2}},
		"it tells of that before a majority has":      {{1, 2}, {0, 9}, {2, 2}},
		"only one master tells of the last":           {{0, 1}, {1, 1}, {2, 1}, {0, 2}},
		"all keep one with a higher number no longer": {{0, 9}, {1, 9}, {2, 9}, {0, 2}, {1, 2}, {2, 2}},
	} {
		t.Run(why, func(t *testing.T) {
			ms := newMasters(t, 3)
			c, links := ms.client()
			lease := mustLock(t, c.Mutex("orders"))
			requests := lease.Requested()
			for _, s := range all {
				r := wire.Request{Number: s.number, Client: "ann", Reason: strconv.FormatInt(s.number, 10)}
				links[s.master].Do(wire.MakeRequest("", []string{lease.Value()}, r, second), func(wire.Reply) {})
			}

			ms.pass(second / 2) // a renewal reads them all again

			mustHear(t, requests, "ann", "2")
			mustHearNothing(t, requests)
			lease.Unlock(ctx)
		})
	}
}

// The master answers each time that it has a later request.
func TestL70_a_request_ends_where_masters_answer_nonsense(t *testing.T) {
	master := &scripted{addr: "master"}
	c, err := redlock.New([]node.Node{master}, redlock.WithClock(clock.NewMock()), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	over := make(chan error, 1)
	go func() { over <- c.RequestRelease(ctx, "orders", "please") }()
	master.next(t, wire.OpRead).answer(wire.Reply{Value: []any{[]byte("a/bcd/1:0"), int64(1000)}})

	last := int64(0)
	for range 8 {
		q := master.next(t, wire.OpRequest)
		number, _ := strconv.ParseInt(q.cmd.Args[0], 10, 64)
		if last > 0 && number != last+1 {
			t.Errorf("asked with number %d after %d", number, last)
		}
		last = number + 1000
		q.answer(wire.Reply{Value: []byte(strconv.FormatInt(last, 10))})
	}

	mustBe(t, arrival(t, "the error", over), redlock.ErrNoQuorum)
}

// One command asks 256 holders.
func TestRequestRelease_reaches_every_holder_however_many_they_are(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		told <- c.RequestRelease(ctx, "gpu", "please")
		return nil, redlock.ErrTaken
	})
	found := []any{nil, int64(-2), int64(0), int64(0), int64(0), []byte("300 0"), nil, nil, nil}
	holders := map[string]bool{}
	for i := range 257 {
		value := fmt.Sprintf("a/bcd/%d:0", i)
		holders["redlock:asked:"+value] = true
		found = append(found, []byte(value), []byte(strconv.Itoa(i)), int64(1000))
	}
	for _, q := range questions(t, masters, wire.OpRead) {
		q.answer(wire.Reply{Value: found})
	}
	for range 2 {
		for i, q := range questions(t, masters, wire.OpRequest) {
			if len(q.cmd.Keys) > 256 {
				t.Errorf("one command asks %d holders", len(q.cmd.Keys))
			}
			for _, key := range q.cmd.Keys {
				if i == 0 {
					delete(holders, key)
				}
			}
			q.answer(wire.Reply{Value: int64(1)})
		}
	}

	if err := arrival(t, "the end of the request", told); err != nil {
		t.Error(err)
	}
	if len(holders) > 0 {
		t.Errorf("not asked: %v", holders)
	}
}

func TestRequested_costs_nothing_unless_it_is_called(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	ms.pass(second)
	if reads, subscribed := ms.nodes[0].count(wire.OpRead), len(ms.nodes[0].subs); reads != 0 || subscribed != 0 {
		t.Errorf("%d reads and %d subscriptions of a lease without Requested", reads, subscribed)
	}

	lease.Requested()
	before := ms.nodes[0].count(wire.OpRead)
	ms.pass(second)

	if reads := ms.nodes[0].count(wire.OpRead) - before; reads < 2 || reads > 6 { // one with each renewal
		t.Errorf("%d reads in a TTL", reads)
	}
	lease.Unlock(ctx)
	if subscribed := len(ms.nodes[0].subs); subscribed != 0 {
		t.Errorf("%d subscriptions are left of a lease that has ended", subscribed)
	}
}

func TestRequested_of_a_lease_that_has_ended(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	lease.Unlock(ctx)

	mustHearNothing(t, lease.Requested())

	if subscribed := len(ms.nodes[0].subs); subscribed != 0 {
		t.Errorf("%d subscriptions", subscribed)
	}
}

func TestRequested_is_the_same_for_nested_holds(t *testing.T) {
	client, masters := redlocktest.New(t)
	m := client.Mutex("orders", redlock.Reentrant())
	lease := lock(t, m)
	inner, err := m.Lock(lease.Context())
	if err != nil {
		t.Fatal(err)
	}
	asks(t, masters.Client(redlock.WithClientID("ann")), "orders", "please")
	if lease.Requested() != inner.Requested() {
		t.Error("two channels of one lease")
	}
	mustHear(t, inner.Requested(), "ann", "please")
	unlocks(t, inner)
	unlocks(t, lease)
}
