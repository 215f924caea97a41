package redlock_test

import (
	"fmt"
	"slices"
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

	cutOff(cut)
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

// L63: a lock is unlocked while its waiter has no connection, and is kept for the rest of the
// period. The waiter hears only by its repeated ask that the lock ends earlier.
func TestReal_L63_a_lock_that_ends_earlier_since_its_waiter_was_cut_off(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	seldom := redlock.WithTTL(5 * time.Minute) // no waiter looks within patience
	addrs, links := masters.behindProxies(t)
	holder, waiter := masters.client(t, seldom), dial(t, addrs, seldom)
	lock(t, holder.Mutex("b"))
	go locksOnce(ctx, waiter.Mutex("b"))
	eventually(t, "it listens", func() bool { return masters.queuedFor(t, "b", 1) }) // or it looks soon
	const period = 5 * time.Second
	lease := lock(t, holder.Mutex("a", redlock.AtLeast(period)))
	began, got := time.Now(), make(chan error, 1)
	go func() { got <- locksOnce(ctx, waiter.Mutex("a")) }()
	eventually(t, "it is queued", func() bool { return masters.queuedFor(t, "a", 1) })

	cutOff(links)
	unlocks(t, lease)
	eventually(t, "the lock is nobody's", func() bool { return !slices.Contains(masters.values(t, "a"), lease.Value()) })
	for _, l := range links {
		l.Heal()
	}

	mustBe(t, arrival(t, "the lock", got), nil)
	if passed := time.Since(began); passed < period-period/50 {
		t.Errorf("after %v, want %v", passed, period)
	}
}
