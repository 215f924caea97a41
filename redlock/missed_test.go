package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// A waiter's ask is on its way to a master when messages may have been missed there. The
// second ask must not overtake the first one: if that could not be sent after all, its
// release would be taken for one that has nothing to release, and the lock would stay
// for its TTL (seed 6618 of the fair fenced locks).
func TestL3AMasterIsNotAskedAgainBeforeTheAskThatIsOnItsWay(t *testing.T) {
	w := waitHeldUpAt(t, 0)

	w.masters.nodes[0].missed()

	w.mustAskTheMasterTwiceAndWin(t)
}

// A waiter's repeated ask is on its way to a master when it asks anew, and messages may
// have been missed there once more. What the second ask was given may have been among
// them, and the answer to the first says nothing of it.
func TestL31WhatAnotherAskWasGivenIsAskedForBesideTheOneOnItsWay(t *testing.T) {
	mock := clock.NewMock()
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("orders").Lock(ctx)
	}, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second), redlock.WithTTL(60*second))
	for _, m := range masters {
		m.next(t, node.OpAcquire).answer(node.Reply{}) // taken
	}
	queued := node.Reply{Value: []any{int64(60_000), int64(0)}}
	for _, m := range masters {
		m.next(t, node.OpAsk).answer(queued)
	}
	masters[0].missed()
	onItsWay := masters[0].next(t, node.OpAsk)

	eventually(t, "the second ask", func() bool {
		mock.Add(second)
		masters[1].mu.Lock()
		defer masters[1].mu.Unlock()
		return len(masters[1].open) > 0
	})
	for _, m := range masters {
		m.next(t, node.OpAsk).answer(queued)
	}
	masters[0].missed()

	onItsWay.answer(queued)
	masters[0].next(t, node.OpAsk).answer(node.Reply{Value: "OK"})
	for _, m := range masters[1:3] {
		m.missed()
		m.next(t, node.OpAsk).answer(node.Reply{Value: "OK"})
	}
	arrival(t, "the lock", got)
}

// The first ask is on its way to a master when the others have decided it, and the time
// for the second has come. The second must not overtake the first: if that could not be
// sent after all, the release would be taken for one that has nothing to release, and the
// lock would stay for its TTL (seed 30076).
func TestL32AnAskDoesNotOvertakeTheOneBefore(t *testing.T) {
	w := waitHeldUpAt(t, 4)

	for range 20 {
		w.masters.clk.Add(50 * time.Millisecond)
	}

	w.mustAskTheMasterTwiceAndWin(t)
}

// heldUp is a waiter for a lock that another client holds. Its first ask stands still
// before one of the masters.
type heldUp struct {
	masters *masters
	master  int
	held    *redlock.Lease
	goOn    chan struct{}
	leases  chan *redlock.Lease
}

// waitHeldUpAt starts a waiter, and returns when its first ask has come to the master.
func waitHeldUpAt(t *testing.T, master int) *heldUp {
	t.Helper()
	ms := fiveMasters(t)
	holder, _ := ms.client()
	w := &heldUp{ms, master, mustLock(t, holder.Mutex("orders")), make(chan struct{}), make(chan *redlock.Lease, 1)}
	c, links := ms.client()
	asked := make(chan struct{})
	var began atomic.Bool
	links[master].before = func(cmd *node.Command) {
		if cmd.Op == node.OpAsk && began.CompareAndSwap(false, true) {
			close(asked)
			<-w.goOn
		}
	}
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		w.leases <- lease
	}()
	arrival(t, "the first ask", asked)
	return w
}

// asks counts the asks that the master ran.
func (w *heldUp) asks() (n int) {
	for _, cmd := range w.masters.nodes[w.master].ran() {
		if cmd == "ask orders" {
			n++
		}
	}
	return n
}

// mustAskTheMasterTwiceAndWin wants nothing to have overtaken the first ask. When that
// goes on, the second follows, and the lock changes hands.
func (w *heldUp) mustAskTheMasterTwiceAndWin(t *testing.T) {
	t.Helper()
	if n := w.asks(); n != 0 {
		t.Errorf("the master ran %d asks before the first was sent", n)
	}
	close(w.goOn)
	eventually(t, "the master is asked again", func() bool { return w.asks() >= 2 })
	if err := w.held.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := arrival(t, "the lock", w.leases).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	w.masters.mustBeFree("orders")
}
