package redlock_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

// Thousands of callers of one process wait. All masters stand still, once, for 300 ms.
// Afterwards the callers are served as before, and the masters receive no more than ten
// registrations for each acquisition.
func TestReal_L46_waiters_are_served_after_all_masters_stood_still(t *testing.T) {
	type locker interface {
		Lock(context.Context) (*redlock.Lease, error)
	}
	for _, kind := range []struct {
		name           string
		waiters, names int
		wanted         int64
		lock           func(c *redlock.Client, name string) locker
	}{
		{"semaphore", 10_000, 1, 500, func(c *redlock.Client, name string) locker { return permitOf{c.Semaphore(name, 1)} }},
		{"writers", 10_000, 1, 500, func(c *redlock.Client, name string) locker { return c.RWMutex(name) }},
		{"fair", 3_000, 1, 500, func(c *redlock.Client, name string) locker { return c.Mutex(name, redlock.Fair()) }},
		{"many locks", 2_000, 2_000, 2_000, func(c *redlock.Client, name string) locker { return c.Mutex(name) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			masters := startMasters(t, 3)
			usual := []redlock.Option{redlock.WithTTL(10 * second), redlock.WithNodeTimeout(defaults.NodeTimeout)}
			name := func(i int) string { return "storm" + strconv.Itoa(i%kind.names) }
			holder := masters.client(t, redlock.WithTTL(10*second))
			held := make([]*redlock.Lease, kind.names)
			for i := range held {
				var err error
				if held[i], err = kind.lock(holder, name(i)).Lock(ctx); err != nil {
					t.Fatal(err)
				}
			}
			var waiting, served atomic.Int64
			c := masters.client(t, append(usual, redlock.WithObserver(func(e redlock.Event) {
				if e.Kind == redlock.LockWaiting {
					waiting.Add(1)
				}
			}))...)
			all, stop := context.WithCancel(ctx)
			var callers sync.WaitGroup
			defer callers.Wait()
			defer stop()
			for i := range kind.waiters {
				callers.Go(func() {
					if lease, err := kind.lock(c, name(i)).Lock(all); err == nil {
						served.Add(1)
						lease.Unlock(ctx)
					}
				})
			}
			eventually(t, "all wait", func() bool { return waiting.Load() == int64(kind.waiters) })

			for _, s := range masters {
				s.Stop()
			}
			time.Sleep(300 * time.Millisecond)
			before := make([]int, len(masters))
			for i, s := range masters {
				s.Continue()
				before[i] = calls(t, s, "zadd")
			}
			for _, lease := range held {
				callers.Go(func() { lease.Unlock(ctx) })
			}
			eventually(t, "callers are served", func() bool {
				for i, s := range masters {
					if n := calls(t, s, "zadd") - before[i]; n > 10*int(max(kind.wanted, served.Load())) {
						t.Fatalf("%d were served, and %s was sent %d registrations", served.Load(), s.Addr(), n)
					}
				}
				return served.Load() >= kind.wanted
			})
			for i, s := range masters {
				t.Logf("%.1f registrations for each acquisition", float64(calls(t, s, "zadd")-before[i])/float64(served.Load()))
			}
		})
	}
}

// permitOf locks one permit of a semaphore.
type permitOf struct{ *redlock.Semaphore }

func (p permitOf) Lock(ctx context.Context) (*redlock.Lease, error) { return p.Acquire(ctx, 1) }
