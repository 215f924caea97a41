package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// S35: the key at a master that has lost its memory lately may have been put back
// behind a vote that somebody still counts. An extension by it is no vote,
// neither for the lease nor against it.
func TestS35_an_extension_by_a_young_memory_does_not_count(t *testing.T) {
	ms := newMasters(t, 3)
	c, links := ms.client(redlock.WithTTL(30 * second))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	links[1].young = true
	links[2].set(down)
	ms.pass(second)
	before := lease.Until()

	mustBe(t, lease.Extend(ctx, 30*second), redlock.ErrNoQuorum)

	if !lease.Until().Equal(before) {
		t.Errorf("the validity moved by %v", lease.Until().Sub(before))
	}
	links[1].young = false
	if err := lease.Extend(ctx, 30*second); err != nil {
		t.Fatal(err)
	}
	if moved := lease.Until().Sub(before); moved != second {
		t.Errorf("the validity moved by %v, want %v", moved, second)
	}
}

// S35: a master may have forgotten since that it gave its vote, and the holder has
// put its key back there. So nobody counts votes that were asked for long ago,
// however long the TTL is.
func TestS35_votes_that_were_asked_for_long_ago_decide_nothing(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(10*second))
	for _, l := range links {
		l.lag(guard.LongestAttempt + 10*time.Millisecond)
	}
	result := tryResult(c.Mutex("orders"))
	eventually(t, "every master said yes", func() bool { return ms.holders("orders")[4] != "" })

	ms.pass(guard.LongestAttempt + 10*time.Millisecond)

	mustBe(t, arrival(t, "the result", result), redlock.ErrExpired)
	ms.mustBeFree("orders")
	for _, l := range links {
		l.lag(guard.LongestAttempt - 10*time.Millisecond)
	}
	result = tryResult(c.Mutex("orders"))
	eventually(t, "every master said yes again", func() bool { return ms.holders("orders")[4] != "" })
	ms.pass(guard.LongestAttempt - 10*time.Millisecond)
	mustBe(t, arrival(t, "the result", result), nil)
}

// The same for one who waits: it asks again.
func TestS35_a_waiter_does_not_count_answers_that_came_late(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, links := ms.client(redlock.WithTTL(15*second), redlock.WithNodeTimeout(10*second))
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	for _, l := range links {
		l.deaf.Store(true) // it is not told of the release, and asks again at a third of the TTL
		l.lag(3 * second)
	}
	held.Unlock(ctx)
	asks := ms.nodes[0].count(wire.OpAsk)
	ms.pass(5 * second)
	eventually(t, "it is given the lock", func() bool { return ms.holders("orders")[4] != "" })
	for _, l := range links {
		l.lag(0)
	}

	lease := receive(t, ms, got)

	if n := ms.nodes[0].count(wire.OpAsk) - asks; n < 2 {
		t.Errorf("it asked %d times: what came 3 s late counts", n)
	}
	if left := lease.Until().Sub(ms.clk.Now()); left < 14*second {
		t.Errorf("validity %v: counts from the ask whose answers were late", left)
	}
}

// A message may be about as old as the last sign that the master remembers: what
// it gives counts for less long than an answer.
func TestS35_a_waiter_does_not_count_what_it_heard_long_ago(t *testing.T) {
	ms := fiveMasters(t)
	other, others := ms.client(redlock.WithTTL(time.Minute))
	c, links := ms.client(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(4*second))
	held := mustLock(t, other.Mutex("orders", redlock.NoRenew()))
	for _, l := range links {
		l.before = func(cmd *wire.Command) {
			if cmd.Op == wire.OpAsk {
				l.lag(time.Hour) // nothing but messages reaches it
			}
		}
	}
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	ms.pass(2 * second)
	for _, l := range links {
		l.before = nil
		l.lag(0)
	}
	for _, l := range others[2:] {
		l.set(hung)
	}

	held.Release() // two masters tell
	ms.pass(second)
	others[2].set(up) // and the third a second later
	lease := receive(t, ms, got)

	if n := ms.nodes[0].count(wire.OpAsk); n < 2 {
		t.Errorf("it asked %d times: what it heard a second before counts", n)
	}
	if !lease.Valid() {
		t.Errorf("%v", lease)
	}
}

func tryResult(m *redlock.Mutex) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := m.TryLock(ctx)
		result <- err
	}()
	return result
}
