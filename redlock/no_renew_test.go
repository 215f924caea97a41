package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// S55: a lease with NoRenew that was waited for is not young, and is not renewed all the
// same.
func TestS55_NoRenew_renews_no_lease_that_was_waited_for(t *testing.T) {
	for waited := 50 * time.Millisecond; waited < 350*time.Millisecond; waited += 50 * time.Millisecond {
		ms := fiveMasters(t)
		other, _ := ms.client()
		c, _ := ms.client()
		held := mustLock(t, other.Mutex("orders", redlock.NoRenew()))
		got := leaseLater(c.Mutex("orders", redlock.NoRenew()))
		ms.awaitQueued("orders", 1)
		ms.pass(waited) // of a TTL of a second
		unlocks(t, held)
		lease := receive(t, ms, got)

		ms.pass(1100 * time.Millisecond)

		ms.mustHaveExtended(0)
		mustBe(t, lease.Err(), redlock.ErrExpired)
	}
}

// S55: Extend asks once. If it finds no quorum, the caller decides what to do.
func TestS55_NoRenew_repeats_no_Extend_that_found_no_quorum(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	for _, l := range links[:3] {
		l.set(down)
	}
	mustBe(t, lease.Extend(ctx, 800*time.Millisecond), redlock.ErrNoQuorum)
	for _, l := range links {
		l.set(up)
	}

	ms.pass(1100 * time.Millisecond)

	ms.mustHaveExtended(1)
	mustBe(t, lease.Err(), redlock.ErrExpired)
}

// mustHaveExtended looks how often a master was asked at most to extend a lease.
func (ms *masters) mustHaveExtended(times int) {
	ms.t.Helper()
	for _, m := range ms.nodes {
		if n := m.count(wire.OpExtend); n > times {
			ms.t.Errorf("%s was asked %d times to extend the lease, want %d", m.addr, n, times)
		}
	}
}
