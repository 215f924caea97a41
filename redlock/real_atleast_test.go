package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// Whatever happens to a minority, the lock of a short job stays for the rest of the period, and
// goes to a waiter then.
func TestReal_S73_AtLeast_keeps_the_lock_for_the_period_with_a_minority_of_the_masters_gone(t *testing.T) {
	t.Parallel()
	const period = 3 * time.Second
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			long := redlock.WithTTL(30 * time.Second)
			one, other := masters.client(t, long), masters.client(t, long)
			eventually(t, "all masters are asked", func() bool { return connected(one) == len(masters) })
			if fault.before != nil {
				fault.before(masters)
			}
			began := time.Now()
			lease, err := one.Mutex("nightly", redlock.AtLeast(period)).Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if fault.while != nil {
				eventually(t, "all masters keep it", func() bool { return masters.allStore(t) })
				fault.while(masters)
			}
			unlocks(t, lease)

			eventually(t, "all that are asked know when the period ends", func() bool { // Unlock waits for a majority
				got, err := other.Mutex("nightly", redlock.AtLeast(period)).TryLock(ctx)
				if got != nil {
					unlocks(t, got)
				}
				if time.Since(began) >= period {
					return true
				}
				mustBe(t, err, redlock.ErrTaken)
				refused := new(redlock.Error)
				return errors.As(err, &refused) && refused.Remaining > 0 && refused.Remaining <= period
			})

			within, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			next, err := other.Mutex("nightly").Lock(within)
			if err != nil {
				t.Fatal(err)
			}
			if passed := time.Since(began); passed < period-period/100-2*time.Millisecond {
				t.Errorf("the next holder has it %v after the lock was asked for, want %v", passed, period)
			}
			unlocks(t, next)
			if fault.after != nil {
				fault.after(masters)
			}
			masters.mustKeepNothing(t)
		})
	}
}

// A crash does not shorten the period to the TTL, and the next holder need not wait for more.
func TestReal_S73_a_crash_of_the_holder_does_not_shorten_the_period(t *testing.T) {
	t.Parallel()
	const ttl, period = time.Second, 3 * time.Second
	short := []redlock.Option{redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl / 2)}
	for kind, options := range map[string][]redlock.MutexOption{"plain": nil, "fenced": {redlock.Fenced()}, "fair": {redlock.Fair()}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			addrs, links := masters.behindProxies(t)
			holder := dial(t, addrs, short...)
			within, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			began := time.Now()
			if _, err := holder.Mutex("nightly", append(options, redlock.AtLeast(period))...).Lock(within); err != nil {
				t.Fatal(err)
			}

			for _, l := range links {
				l.Drop(faultproxy.Requests) // nothing of the holder arrives any more: neither a renewal nor a release
			}
			next, err := masters.client(t, short...).Mutex("nightly", options...).Lock(within)

			passed := time.Since(began)
			if err != nil {
				t.Fatal(err)
			}
			if passed < period-period/100-2*time.Millisecond || passed > patience/2 {
				t.Errorf("the next holder has it %v after the lock was asked for, want %v", passed, period)
			}
			unlocks(t, next)
		})
	}
}

// However the lease ends, the lock stays: but ForceUnlock frees it.
func TestReal_S73_AtLeast_keeps_the_lock_however_the_lease_ends(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	minute := redlock.WithTTL(time.Minute)
	observer := masters.client(t, minute)
	for name, ends := range map[string]func(*redlock.Client, *redlock.Lease, []redlock.MutexOption){
		"Unlock":  func(_ *redlock.Client, l *redlock.Lease, _ []redlock.MutexOption) { unlocks(t, l) },
		"Release": func(_ *redlock.Client, l *redlock.Lease, _ []redlock.MutexOption) { l.Release() },
		"Close":   func(c *redlock.Client, _ *redlock.Lease, _ []redlock.MutexOption) { c.Close() },
		"Adopt": func(_ *redlock.Client, l *redlock.Lease, options []redlock.MutexOption) {
			again, err := masters.client(t, minute).Mutex(l.Name(), options...).Adopt(ctx, l.Value())
			if err != nil {
				t.Error(err)
				return
			}
			unlocks(t, again)
		},
		"Extend": func(_ *redlock.Client, l *redlock.Lease, _ []redlock.MutexOption) {
			if err := l.Extend(ctx, 10*time.Second); err != nil {
				t.Error(err)
			}
			unlocks(t, l)
		},
	} {
		for kind, more := range map[string][]redlock.MutexOption{"plain": nil, "fenced": {redlock.Fenced()}, "fair": {redlock.Fair()}, "re-entrant": {redlock.Reentrant()}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				c, options := masters.client(t, minute), append(more, redlock.AtLeast(time.Minute))
				lock := name + " " + kind
				lease, err := c.Mutex(lock, options...).Lock(ctx)
				if err != nil {
					t.Fatal(err)
				}

				ends(c, lease, options)

				_, err = observer.Mutex(lock, options...).TryLock(ctx)
				mustBe(t, err, redlock.ErrTaken)
				if _, err := observer.ForceUnlock(ctx, lock); err != nil {
					t.Fatal(err)
				}
				next, err := observer.Mutex(lock, more...).TryLock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				unlocks(t, next)
			})
		}
	}
}

// The lease has ended, and the lock stays. Whoever has written its value down cannot take it up
// again, since the job has ended.
func TestReal_S73_a_lock_that_is_only_kept_is_nobodys(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	const period = time.Minute
	c := masters.client(t, redlock.WithTTL(period))
	for kind, more := range map[string][]redlock.MutexOption{"plain": nil, "fenced": {redlock.Fenced()}, "fair": {redlock.Fair()}} {
		t.Run(kind, func(t *testing.T) {
			m := c.Mutex(kind, append(more, redlock.AtLeast(period), redlock.Metadata("some job"))...)
			lease, err := m.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if h, err := c.Inspect(ctx, kind); err != nil || h.Kept {
				t.Errorf("while it is held: %+v, %v", h, err)
			}

			unlocks(t, lease)

			_, err = m.Adopt(ctx, lease.Value())
			mustBe(t, err, redlock.ErrNotHeld)
			h, err := c.Inspect(ctx, kind)
			if err != nil || !h.Held || !h.Kept || h.Value != lease.Value() || h.Metadata != "some job" || h.Token != lease.Token() || h.Remaining <= 0 || h.Remaining > period {
				t.Errorf("%+v, %v", h, err)
			}
			masters[0].Do("SET", kind, lease.Value(), "PX", 60_000) // its release has not arrived here
			if _, err := c.ForceUnlock(ctx, kind); err != nil {
				t.Fatal(err)
			}
			masters.mustKeepNothing(t)
		})
	}
}

// Waiters learn that the lock ends earlier than its TTL said, and do not look before.
func TestReal_S73_waiters_ask_when_the_lock_ends(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	const period = 2 * time.Second
	holder := masters.client(t, redlock.WithTTL(time.Minute))
	waiter := masters.client(t, redlock.WithTTL(time.Minute)) // looks every 20 s
	lease, err := holder.Mutex("a", redlock.AtLeast(period)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began, result := time.Now(), make(chan error, 1)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() {
		next, err := waiter.Mutex("a", redlock.AtLeast(period)).Lock(within)
		if err == nil {
			err = next.Unlock(ctx)
		}
		result <- err
	}()
	eventually(t, "it is queued", func() bool { return masters.queues(t) > len(masters)/2 })

	unlocks(t, lease)

	mustBe(t, arrival(t, "the lock", result), nil)
	if passed := time.Since(began); passed > 15*time.Second {
		t.Errorf("the waiter has the lock after %v: it looked by its own timer", passed)
	}
}

func TestReal_S73_AtLeast_refuses_what_cannot_be_kept(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(2*time.Second), redlock.WithRestartGuard(10*time.Second))
	for want, options := range map[string][]redlock.MutexOption{
		"redlock: AtLeast(11s): must be at most the restart guard 10s (see WithRestartGuard)": {redlock.AtLeast(11 * time.Second)},
		"redlock: AtLeast(5s): must be at most MaxHold, 4s":                                   {redlock.AtLeast(5 * time.Second), redlock.MaxHold(4 * time.Second)},
	} {
		if _, err := c.Mutex("a", options...).TryLock(ctx); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// L55: whoever learns that a lock that is kept ends earlier may leave before. Then those behind it
// get the lock at that time.
func TestReal_L55_waiters_that_leave_do_not_delay_those_behind_them(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	seldom := redlock.WithTTL(5 * time.Minute) // no waiter looks within patience
	addrs, links := masters.behindProxies(t)
	holder, gives, closes, dies, stays := masters.client(t, seldom), masters.client(t, seldom), masters.client(t, seldom), dial(t, addrs, seldom), masters.client(t, seldom)
	lock(t, holder.Mutex("b"))
	for i, c := range []*redlock.Client{gives, closes, dies, stays} {
		go locksOnce(ctx, c.Mutex("b"))
		eventually(t, "it listens", func() bool { return masters.queuedFor(t, "b", i+1) }) // or it looks soon
	}
	lease := lock(t, holder.Mutex("a", redlock.AtLeast(4*time.Second)))
	within, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for i, c := range []*redlock.Client{gives, closes, dies} {
		go locksOnce(within, c.Mutex("a"))
		eventually(t, "it is queued", func() bool { return masters.queuedFor(t, "a", i+1) })
	}
	got := make(chan error, 1)
	go func() { got <- locksOnce(ctx, stays.Mutex("a")) }()
	eventually(t, "all are queued", func() bool { return masters.queuedFor(t, "a", 4) })

	unlocks(t, lease)
	eventually(t, "the lock is nobody's", func() bool { return !slices.Contains(masters.values(t, "a"), lease.Value()) })
	giveUp()
	closes.Close()
	for _, l := range links {
		l.Refuse()
		l.Reset()
	}

	mustBe(t, arrival(t, "the lock", got), nil)
}

// L55: also if all leave that were told: callers of as many clients, or of one, or of one that dies.
func TestReal_L55_all_that_were_told_leave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clients int
		leave   func(giveUp func(), one *redlock.Client, links []*faultproxy.Proxy)
	}{
		"eight clients give up": {8, func(giveUp func(), _ *redlock.Client, _ []*faultproxy.Proxy) { giveUp() }},
		"eight callers give up": {1, func(giveUp func(), _ *redlock.Client, _ []*faultproxy.Proxy) { giveUp() }},
		"one client closes":     {1, func(_ func(), one *redlock.Client, _ []*faultproxy.Proxy) { one.Close() }},
		"one client is cut off": {1, func(_ func(), _ *redlock.Client, links []*faultproxy.Proxy) { cutOff(links) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			seldom := redlock.WithTTL(5 * time.Minute) // no waiter looks within patience
			addrs, links := masters.behindProxies(t)
			holder, last := masters.client(t, seldom), masters.client(t, seldom)
			lock(t, holder.Mutex("b"))
			go locksOnce(ctx, last.Mutex("b"))
			eventually(t, "it listens", func() bool { return masters.queuedFor(t, "b", 1) }) // or it looks soon
			names, got := []string{"a", "c"}, make(chan error, 2)                            // a client leaves both by one call
			leases := []*redlock.Lease{lock(t, holder.Mutex("a", redlock.AtLeast(5*time.Second))), lock(t, holder.Mutex("c", redlock.AtLeast(5*time.Second)))}
			within, giveUp := context.WithCancel(ctx)
			defer giveUp()
			var one *redlock.Client
			for i := range 8 {
				if i < c.clients {
					one = dial(t, addrs, seldom)
				}
				for _, name := range names {
					go locksOnce(within, one.Mutex(name, redlock.Fair()))
					eventually(t, "it is queued", func() bool { return masters.queuedFor(t, name, i+1) })
				}
			}
			for _, name := range names {
				go func() { got <- locksOnce(ctx, last.Mutex(name, redlock.Fair())) }()
				eventually(t, "the last one is queued", func() bool { return masters.queuedFor(t, name, 9) })
			}

			for i, l := range leases {
				unlocks(t, l)
				eventually(t, "the lock is nobody's", func() bool { return !slices.Contains(masters.values(t, names[i]), l.Value()) })
			}
			c.leave(giveUp, one, links)

			mustBe(t, arrival(t, "the first lock", got), nil)
			mustBe(t, arrival(t, "the second lock", got), nil)
		})
	}
}

func cutOff(links []*faultproxy.Proxy) {
	for _, l := range links {
		l.Refuse()
		l.Reset()
	}
}

func locksOnce(ctx context.Context, m *redlock.Mutex) error {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return lease.Unlock(context.Background())
}

// L55: however many wait, a release that has the lock end earlier tells few of them.
func TestReal_L55_an_early_release_tells_the_first_few(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	minute := redlock.WithTTL(time.Minute)
	c, waits := masters.client(t, minute), masters.client(t, minute)
	lease, err := c.Mutex("a", redlock.AtLeast(30*time.Second)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 20
	within, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for range waiters {
		go waits.Mutex("a", redlock.Fair()).Lock(within)
	}
	eventually(t, "all are queued", func() bool { return masters.queuedFor(t, "a", waiters) })
	before := calls(t, masters[0], "publish")

	unlocks(t, lease)

	eventually(t, "the lock is nobody's", func() bool { return !slices.Contains(masters.values(t, "a"), lease.Value()) })
	if told := calls(t, masters[0], "publish") - before; told != 8 {
		t.Errorf("told %d, want 8", told)
	}
}

// L56: who adopts a lease when the period is over does not start it again.
func TestReal_L56_the_release_of_an_adopted_lease_starts_no_new_period(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	minute := redlock.WithTTL(time.Minute)
	option := redlock.AtLeast(3 * time.Second)
	lease, err := masters.client(t, minute).Mutex("a", option).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the period is over", func() bool { return masters.free(t, "redlock:kept:a") })
	adopted, err := masters.client(t, minute).Mutex("a", option).Adopt(ctx, lease.Value())
	if err != nil {
		t.Fatal(err)
	}

	unlocks(t, adopted)

	next, err := masters.client(t, minute).Mutex("a").TryLock(ctx)
	if err != nil {
		t.Fatalf("the lock stays: %v", err)
	}
	unlocks(t, next)
}

// L56: a release that comes late has no lock end later, also where the lock was lost and put back,
// and the master no longer knows for how long to keep it.
func TestReal_L56_a_late_release_does_not_lengthen_a_lock(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	const long = time.Minute
	lease, err := masters.client(t, redlock.WithTTL(long)).Mutex("a", redlock.AtLeast(long)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	masters.mustHold(t, lease)
	do(t, masters[2], "DEL", "a", "redlock:kept:a")
	if err := lease.Extend(ctx, long); err != nil {
		t.Fatal(err)
	}
	masters.mustHold(t, lease)
	do(t, masters[2], "PEXPIRE", "a", 10_000) // as if most of it had passed when the release arrives

	unlocks(t, lease)

	eventually(t, "the lock is nobody's", func() bool { return !slices.Contains(masters.values(t, "a"), lease.Value()) })
	if left := do(t, masters[2], "PTTL", "a").(int64); left > 10_000 {
		t.Errorf("the lock stays for %d ms", left)
	}
}

// A master that was asked to keep the lock for an earlier holder does not keep it for the next.
func TestReal_S73_a_lock_is_kept_for_who_asked_for_it(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	const period = time.Minute
	lease, err := masters.client(t, redlock.WithTTL(period)).Mutex("a", redlock.AtLeast(period)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	masters.mustHold(t, lease)
	do(t, masters[2], "SET", "redlock:kept:a", "gone/aaaaaaaaaaaaaaaa/1:0", "PX", 60_000)

	unlocks(t, lease)

	eventually(t, "the third master is free", func() bool { return do(t, masters[2], "EXISTS", "a").(int64) == 0 })
	if n := do(t, masters[0], "EXISTS", "a").(int64) + do(t, masters[1], "EXISTS", "a").(int64); n != 2 {
		t.Errorf("%d of the other two keep it", n)
	}
}
