package redlock_test

import (
	"slices"
	"sync/atomic"
	"testing"

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
