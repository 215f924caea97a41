package redlock_test

import (
	"context"
	"slices"
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
	ms := fiveMasters(t)
	holder, _ := ms.client()
	held := mustLock(t, holder.Mutex("orders"))
	c, links := ms.client()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var began atomic.Bool
	links[0].before = func(cmd *node.Command) {
		if cmd.Op == node.OpAsk && began.CompareAndSwap(false, true) {
			close(asked)
			<-goOn
		}
	}
	leases := make(chan *redlock.Lease, 1)
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		leases <- lease
	}()
	arrival(t, "the first ask", asked)

	ms.nodes[0].missed()

	if ran := ms.nodes[0].ran(); slices.Contains(ran, "ask orders") {
		t.Errorf("the master ran %q before the first ask was sent", ran)
	}
	close(goOn)
	asks := func() (n int) {
		for _, cmd := range ms.nodes[0].ran() {
			if cmd == "ask orders" {
				n++
			}
		}
		return n
	}
	eventually(t, "the master is asked again", func() bool { return asks() >= 2 })
	if err := held.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := arrival(t, "the lock", leases).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	ms.mustBeFree("orders")
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
	ms := fiveMasters(t)
	holder, _ := ms.client()
	held := mustLock(t, holder.Mutex("orders"))
	c, links := ms.client()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var began atomic.Bool
	links[4].before = func(cmd *node.Command) {
		if cmd.Op == node.OpAsk && began.CompareAndSwap(false, true) {
			close(asked)
			<-goOn
		}
	}
	leases := make(chan *redlock.Lease, 1)
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		leases <- lease
	}()
	arrival(t, "the first ask", asked)

	for range 20 {
		ms.clk.Add(50 * time.Millisecond)
	}

	if ran := ms.nodes[4].ran(); slices.Contains(ran, "ask orders") {
		t.Errorf("the master ran %q before the first ask was sent", ran)
	}
	close(goOn)
	eventually(t, "the second ask", func() bool {
		asks := 0
		for _, cmd := range ms.nodes[4].ran() {
			if cmd == "ask orders" {
				asks++
			}
		}
		return asks >= 2
	})
	if err := held.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := arrival(t, "the lock", leases).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	ms.mustBeFree("orders")
}
