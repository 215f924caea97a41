package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// L62: a lock is unlocked while its waiter has no connection. The waiter asks when it has
// connections again, in whichever order they come back.
func TestReal_L62_a_lock_that_was_unlocked_while_its_waiter_was_cut_off(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	seldom := redlock.WithTTL(5 * time.Minute) // no waiter looks within patience
	holder := masters.client(t, seldom)
	lock(t, holder.Mutex("b"))
	const waiters = 6 // the order is random
	leases, got := [waiters]*redlock.Lease{}, make(chan error, waiters)
	var cut []*faultproxy.Proxy
	for i := range waiters {
		name := fmt.Sprint("a", i)
		addrs, links := masters.behindProxies(t)
		c := dial(t, addrs, seldom)
		leases[i], cut = lock(t, holder.Mutex(name)), append(cut, links...)
		go locksOnce(ctx, c.Mutex("b"))
		eventually(t, "it listens", func() bool { return masters.queuedFor(t, "b", i+1) }) // or it looks soon
		go func() { got <- locksOnce(ctx, c.Mutex(name)) }()
		eventually(t, "it is queued", func() bool { return masters.queuedFor(t, name, 1) })
	}

	for _, l := range cut {
		l.Refuse()
		l.Reset()
	}
	for i, l := range leases {
		unlocks(t, l)
		eventually(t, "the lock is free", func() bool { return masters.free(t, fmt.Sprint("a", i)) })
	}
	for _, l := range cut {
		l.Heal()
	}

	for range leases {
		mustBe(t, arrival(t, "the lock", got), nil)
	}
}
