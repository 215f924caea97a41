package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// trap is a clock that springs at its next reading.
type trap struct {
	*clock.Mock
	set    atomic.Bool
	spring func()
}

func (c *trap) Now() time.Time {
	if c.set.Swap(false) {
		c.spring()
	}
	return c.Mock.Now()
}

// Messages gave a waiter the lock while the answers to its ask were under way, and
// it was too late for a lease. The round of that ask ended just then, and the
// waiter thought for ever that it was still under way (seed 1438 of the swarm).
func TestA_waiter_that_was_given_the_lock_too_late_asks_again(t *testing.T) {
	// Given a waiter whose last ask is carried out and not answered.
	ms := fiveMasters(t)
	other, _ := ms.client()
	clk := &trap{Mock: ms.clk}
	var links []*link
	clk.spring = func() {
		for _, l := range links {
			l.lag(0)
		}
		ms.clk.Add(2 * second) // the round times out, and the keys end
	}
	var given atomic.Bool
	c, links := ms.client(redlock.WithClock(clk),
		seam.Option(seam.Seams{Guarded: true, Wait: func(ctx context.Context, ready <-chan struct{}) error {
			err := seam.Select(ctx, ready)
			clk.set.Store(given.Swap(false)) // the next reading is that of a waiter that has won
			return err
		}}).(redlock.Option))
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	for _, l := range links {
		l.lag(time.Minute)
	}
	asks := ms.nodes[4].count(wire.OpAsk)
	eventually(t, "it asks again", func() bool {
		ms.clk.Add(10 * time.Millisecond)
		return ms.nodes[4].count(wire.OpAsk) > asks
	})

	// When it is given the lock, and at that moment is stopped for longer than its TTL.
	given.Store(true)
	unlocks(t, held)

	if lease := receive(t, ms, got); !lease.Valid() {
		t.Error("not valid")
	}
}

// Asks cost the masters more than attempts. Masters that have too much to do, and
// answer too late, must not get even more to do by it.
func TestNobody_joins_a_queue_that_was_opened_for_want_of_answers(t *testing.T) {
	// Given a lock that once could not be taken because no quorum could be reached.
	ms := fiveMasters(t)
	c, links := ms.client()
	for _, l := range links[:3] {
		l.set(down)
	}
	got := leaseLater(c.Mutex("orders"))
	eventually(t, "it asks", func() bool {
		ms.clk.Add(10 * time.Millisecond)
		return ms.nodes[4].count(wire.OpAsk) > 0
	})
	for _, l := range links {
		l.heal()
	}
	unlocks(t, receive(t, ms, got))
	asks, attempts := ms.nodes[4].count(wire.OpAsk), ms.nodes[4].count(wire.OpAcquire)

	// When it is wanted again.
	lease := receive(t, ms, leaseLater(c.Mutex("orders")))

	if n := ms.nodes[4].count(wire.OpAsk) - asks; n != 0 {
		t.Errorf("asked %d times, want an attempt", n)
	}
	if n := ms.nodes[4].count(wire.OpAcquire) - attempts; n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}

	// And as before where somebody has the lock.
	got = leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	unlocks(t, lease)
	unlocks(t, receive(t, ms, got))
	attempts = ms.nodes[4].count(wire.OpAcquire)
	unlocks(t, receive(t, ms, leaseLater(c.Mutex("orders"))))
	if n := ms.nodes[4].count(wire.OpAcquire) - attempts; n != 0 {
		t.Errorf("%d attempts at a lock that others have wanted, want asks alone", n)
	}
}

// Who polls is queued nowhere, so nobody gives it the rest: it must not wait ever longer
// with what a minority gave it.
func TestL2_a_waiter_that_polls_keeps_no_minority(t *testing.T) {
	ms := fiveMasters(t)
	holding, links := ms.client(redlock.WithTTL(time.Hour))
	links[3].set(down)
	links[4].set(down)
	held := mustLock(t, holding.Mutex("orders", redlock.NoRenew()))
	polling, _ := ms.client(redlock.WithTTL(time.Hour))
	next := lockLater(t, polling.Mutex("orders", redlock.Polling(10*time.Millisecond, 10*time.Millisecond)))
	counted := func(op wire.Op, n int) func() bool {
		return func() bool {
			ms.clk.Add(10 * time.Millisecond)
			return ms.nodes[3].count(op) >= n && ms.nodes[4].count(op) >= n
		}
	}

	eventually(t, "it has tried 50 times", counted(wire.OpAcquire, 50))
	eventually(t, "it has given back what it got", counted(wire.OpRelease, 50))

	held.Unlock(ctx)
	over := inBackground(func() time.Duration { ms.clk.Add(10 * time.Millisecond); return time.Millisecond })
	defer over()
	next().Unlock(ctx)
}

// The pauses of a caller that polls delay no other caller of its client.
func TestL54_nobody_waits_behind_a_caller_that_polls(t *testing.T) {
	ms := fiveMasters(t)
	holding, _ := ms.client(redlock.WithTTL(time.Hour))
	held := mustLock(t, holding.Mutex("orders"))
	c, _ := ms.client(redlock.WithTTL(time.Hour))
	tried := ms.nodes[0].count(wire.OpAcquire)
	polling, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Mutex("orders", redlock.Polling(time.Hour, time.Hour)).Lock(polling)
	}()
	eventually(t, "one polls", func() bool { return ms.nodes[0].count(wire.OpAcquire) == tried+2 })
	next := lockLater(t, c.Mutex("orders"))
	ms.awaitQueued("orders", 1)

	unlocks(t, held)

	unlocks(t, next())
	stop()
	<-over
}
