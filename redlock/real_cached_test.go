package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// A cached lock asks no master while only one process uses it.
func TestReal_a_cached_lock_stays_in_the_process(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	c := masters.client(t, redlock.WithTTL(10*second))
	m := c.Mutex("lock", redlock.Cached())
	var values []string
	for range 3 {
		lease, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, lease.Value())
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if lease.Valid() {
			t.Error("valid after Unlock")
		}
		if err := lease.Unlock(ctx); err == nil {
			t.Error("a second Unlock says nothing")
		}
		if h, err := c.Inspect(ctx, "lock"); err != nil || !h.Held || !h.Cached {
			t.Errorf("%+v, %v", h, err)
		}
	}
	if values[0] != values[1] || values[0] != values[2] {
		t.Errorf("values %q", values)
	}
}

// Another process gets it soon.
func TestReal_a_cached_lock_goes_to_another_process(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	var ms []*redlock.Mutex
	for range 2 {
		ms = append(ms, masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Cached()))
	}
	for turn := range 200 {
		since := time.Now()
		lease, err := ms[turn%2].Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(since); took > second {
			t.Errorf("turn %d: took %v", turn, took)
		}
		lease.Unlock(ctx)
	}
}

// A lock that rests costs no command, and is given back when it has rested for long enough.
func TestReal_a_cached_lock_asks_no_master(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	m := masters.client(t, redlock.WithTTL(time.Hour)).Mutex("lock", redlock.Cached(5*second))
	first := lock(t, m)
	masters.mustHold(t, first)
	unlocks(t, first)
	asked := masters.tap(t)
	eventually(t, "it is renewed no more because it could not hear before", func() bool {
		time.Sleep(100 * time.Millisecond)
		return slices.Max(asked.since(t)) == 0
	})

	for range 100 {
		unlocks(t, lock(t, m))
	}

	if n := asked.since(t); slices.Max(n) > 0 {
		t.Errorf("%d commands", n)
	}
	masters.mustBeFreeSoon(t, "lock")
}

// Another process waits before the masters can notify the holder. The holder learns it from a renewal,
// as soon as they can (L76).
func TestReal_L76_a_cached_lock_goes_to_who_waited_before_its_process_could_hear(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	long := redlock.WithTTL(time.Hour)
	var mu sync.Mutex
	dialed := map[string]bool{}
	ears := make(chan struct{}) // closed: the connections that listen are dialed
	deaf := redlock.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		again := dialed[addr]
		dialed[addr] = true
		mu.Unlock()
		if again {
			<-ears
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
	unlocks(t, lock(t, masters.client(t, long, deaf).Mutex("lock", redlock.Cached())))
	c := masters.client(t, long, redlock.WithRetryInterval(time.Minute))
	unlocks(t, lock(t, c.Mutex("another", redlock.Cached())))
	eventually(t, "it hears", func() bool { return c.Healthy() == nil })
	other := leaseLater(c.Mutex("lock"))
	eventually(t, "it waits", func() bool { return masters.queuedFor(t, "lock", 1) })

	close(ears)

	unlocks(t, arrival(t, "the lock", other))
}

// TryLock of another process gets a lock that rests, if its handle is cached, too.
func TestReal_a_cached_lock_that_rests_goes_to_who_tries(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	long := redlock.WithTTL(time.Minute)
	unlocks(t, lock(t, masters.client(t, long).Mutex("lock", redlock.Cached())))
	other := masters.client(t, long, redlock.WithNodeTimeout(patience))

	if _, err := other.Mutex("lock").TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("without Cached: %v", err)
	}
	lease, err := other.Mutex("lock", redlock.Cached()).TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Mutex("lock", redlock.Cached()).TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("while its own process uses it: %v", err)
	}
	unlocks(t, lease)
}

// A Multi waits for a cached lock as others do, also with a prefix.
func TestReal_a_cached_lock_that_rests_goes_to_a_Multi(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	opts := []redlock.Option{redlock.WithTTL(time.Hour), redlock.WithKeyPrefix("app:")}
	holder := dial(t, redistest.URLs(masters), opts...)
	for _, name := range []string{"a", "b"} {
		unlocks(t, lock(t, holder.Mutex(name, redlock.Cached())))
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	lease, err := dial(t, redistest.URLs(masters), opts...).Multi([]string{"a", "b"}).Lock(limited)

	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, lease)
}

// A Multi is told that it is its turn, and asks a round trip later: meanwhile the process that leaves
// the lock does not take it again (L78).
func TestReal_L78_a_Multi_gets_a_cached_lock_that_another_process_always_uses(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	addrs, proxies := masters.behindProxies(t)
	for _, p := range proxies {
		p.Delay(faultproxy.Requests, 3*time.Millisecond)
		p.Delay(faultproxy.Replies, 3*time.Millisecond)
	}
	long := redlock.WithTTL(time.Minute)
	m := dial(t, addrs, long).Mutex("a", redlock.Cached())
	unlocks(t, lock(t, m))
	ended, stop := context.WithCancel(ctx)
	var uses sync.WaitGroup
	uses.Go(func() {
		for ended.Err() == nil {
			unlocks(t, lock(t, m))
		}
	})
	defer uses.Wait()
	defer stop()
	both := dial(t, addrs, long).Multi([]string{"a", "b"})
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	for range 10 {
		lease, err := both.Lock(limited)
		if err != nil {
			t.Fatal(err)
		}
		unlocks(t, lease)
	}
}

// A process that has the lock, and does not use it, is told that it is taken away.
func TestReal_a_cached_lock_that_rests_is_not_used_after_ForceUnlock(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	opts := []redlock.Option{redlock.WithTTL(time.Hour), redlock.WithKeyPrefix("app:")}
	m := dial(t, redistest.URLs(masters), opts...).Mutex("lock", redlock.Cached(), redlock.Metadata("a/b:c job"))
	unlocks(t, lock(t, m))
	other := dial(t, redistest.URLs(masters), opts...)

	if _, err := other.ForceUnlock(ctx, "lock"); err != nil {
		t.Fatal(err)
	}

	defer unlocks(t, lock(t, other.Mutex("lock")))
	eventually(t, "it asks the masters", func() bool {
		lease, err := m.TryLock(ctx)
		if err == nil {
			unlocks(t, lease)
		}
		return errors.Is(err, redlock.ErrTaken)
	})
}

// The holder locks it again, also where others wait meanwhile.
func TestReal_a_cached_lock_that_is_reentrant(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	m := masters.client(t, redlock.WithTTL(time.Hour)).Mutex("lock", redlock.Cached(), redlock.Reentrant())
	outer := lock(t, m)
	other := leaseLater(masters.client(t, redlock.WithTTL(time.Hour)).Mutex("lock"))
	eventually(t, "another one waits", func() bool { return masters.queuedFor(t, "lock", 1) })

	inner, err := m.Lock(outer.Context())
	if err != nil || inner != outer {
		t.Fatalf("%v, %v", inner, err)
	}
	unlocks(t, inner)
	if !outer.Valid() || len(other) > 0 {
		t.Error("it has gone with the first of two Unlocks")
	}

	unlocks(t, outer)

	unlocks(t, arrival(t, "the lock", other))
}

// A client that no master can notify learns from its next renewal that others wait.
func TestReal_a_cached_lock_goes_with_the_next_renewal_where_no_message_comes(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	masters.doAll(t, "ACL", "SETUSER", "ann", "on", ">p", "~*", "&*", "+@all", "-subscribe")
	var deaf []string
	for _, url := range redistest.URLs(masters) {
		deaf = append(deaf, strings.Replace(url, "redis://", "redis://ann:p@", 1))
	}
	unlocks(t, lock(t, dial(t, deaf, redlock.WithTTL(3*second)).Mutex("lock", redlock.Cached(time.Hour))))
	since := time.Now()

	unlocks(t, lock(t, masters.client(t, redlock.WithTTL(time.Minute)).Mutex("lock")))

	if took := time.Since(since); took > 2*second {
		t.Errorf("it took %v", took)
	}
}

// Who has waited stays queued while it has the lock, and is not another one that waits.
func TestReal_a_cached_lock_that_was_waited_for_stays_in_the_process(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	first := lock(t, masters.client(t).Mutex("lock"))
	m := masters.client(t, redlock.WithTTL(second), redlock.WithClientID("ann")).Mutex("lock", redlock.Cached(time.Hour))
	got := leaseLater(m)
	masters.awaitQueued(t, "lock", "ann")
	unlocks(t, first)
	unlocks(t, arrival(t, "the lock", got)) // others may have waited before
	lease := lock(t, m)
	masters.awaitQueued(t, "lock", "ann")
	unlocks(t, lease)

	time.Sleep(2 * second)

	if h, err := masters.client(t).Inspect(ctx, "lock"); err != nil || h.Value != lease.Value() {
		t.Errorf("after renewals the masters store %q, not %q (%v)", h.Value, lease.Value(), err)
	}
}

// While another process waits, the lock is passed 16 times within a process, and no more.
func TestReal_a_cached_lock_is_not_passed_within_a_process_for_ever(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	long := redlock.WithTTL(time.Minute)
	m := masters.client(t, long).Mutex("lock", redlock.Cached())
	ended, stop := context.WithCancel(ctx)
	defer stop()
	var sections atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for ended.Err() == nil {
				lease := lock(t, m)
				time.Sleep(100 * time.Microsecond)
				unlocks(t, lease)
				sections.Add(1)
			}
		})
	}
	eventually(t, "it is passed", func() bool { return sections.Load() > 100 })
	other := masters.client(t, long).Mutex("lock")

	for range 20 {
		unlocks(t, lock(t, other))
	}

	stop()
	callers.Wait()
}

// A lease that is lost ends its section; the next Lock asks the masters.
func TestReal_a_cached_lock_that_is_lost_is_acquired_anew(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	m := masters.client(t, redlock.WithTTL(second)).Mutex("lock", redlock.Cached())
	for _, rests := range []bool{false, true} {
		lease := lock(t, m)
		value := lease.Value()
		if rests {
			unlocks(t, lease)
		} else {
			eventually(t, "it is lost", func() bool {
				masters.doAll(t, "DEL", "lock") // again, where a renewal has put it back meanwhile
				return lease.Context().Err() != nil
			})
			if cause := context.Cause(lease.Context()); !errors.Is(cause, redlock.ErrLost) {
				t.Errorf("the cause is %v", cause)
			}
		}
		eventually(t, "another value", func() bool {
			masters.doAll(t, "DEL", "lock")
			again := lock(t, m)
			defer again.Unlock(ctx)
			return again.Value() != value
		})
	}
}

// The observer is told of each Lock and its end, once.
func TestReal_a_cached_lock_is_observed(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	var mu sync.Mutex
	told := map[redlock.EventKind]int{}
	c := masters.client(t, redlock.WithTTL(10*second), redlock.WithObserver(func(e redlock.Event) {
		mu.Lock()
		defer mu.Unlock()
		told[e.Kind]++
	}))
	m := c.Mutex("lock", redlock.Cached())
	for range 3 {
		unlocks(t, lock(t, m))
	}
	last := lock(t, m)

	c.Close()

	if !errors.Is(last.Err(), redlock.ErrClosed) {
		t.Errorf("after Close the lease says %v", last.Err())
	}
	mu.Lock()
	defer mu.Unlock()
	if got := [3]int{told[redlock.LockAcquired], told[redlock.LeaseReleased], told[redlock.LeaseLost]}; got != [3]int{4, 4, 0} {
		t.Errorf("acquired, released and lost: %v", got)
	}
	masters.mustBeFreeSoon(t, "lock")
}

func TestReal_Cached_names_what_does_not_go_with_it(t *testing.T) {
	t.Parallel()
	c := startMasters(t, 1).client(t)
	for name, with := range map[string]redlock.MutexOption{
		"Fenced": redlock.Fenced(), "Fair": redlock.Fair(), "AtLeast": redlock.AtLeast(second), "NoRenew": redlock.NoRenew(),
		"MaxHold": redlock.MaxHold(time.Hour), "Polling": redlock.Polling(second, second), "StopWithin": redlock.StopWithin(second/10, redlock.Exit(1)),
	} {
		_, err := c.Mutex("lock", redlock.Cached(), with).TryLock(ctx)
		if want := "redlock: Cached with " + name + ": must not be combined"; err == nil || err.Error() != want {
			t.Errorf("%v; want %q", err, want)
		}
	}
	for _, idle := range [][]time.Duration{{0}, {-1}, {1, 2}} {
		if _, err := c.Mutex("lock", redlock.Cached(idle...)).TryLock(ctx); err == nil || !strings.Contains(err.Error(), "Cached(") {
			t.Errorf("Cached(%v): %v", idle, err)
		}
	}
}

func TestReal_a_cached_lock_excludes(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	s := newSection(t)
	var all sync.WaitGroup
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const each = 50
	for range 3 {
		m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Cached())
		for range 4 {
			all.Go(func() {
				for range each {
					if err := redlock.Do(limited, m, func(context.Context) error { return s.enter() }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if got := s.count(t); got != 12*each {
		t.Errorf("%d of %d", got, 12*each)
	}
}

// BenchmarkCached takes and releases one lock that stays in the process: by one caller, and by 64
// that pass it to each other.
func BenchmarkCached(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	c := dial(b, redistest.URLs(servers))
	for _, opts := range map[string][]redlock.MutexOption{"": nil, "cached": {redlock.Cached()}} {
		m := c.Mutex("lock", opts...)
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%d options/callers=%d", len(opts), callers), func(b *testing.B) {
				benchPairs(b, callers, func(int) error {
					lease, err := m.Lock(ctx)
					if err != nil {
						return err
					}
					return lease.Unlock(ctx)
				})
			})
		}
	}
}
