package redlock_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// L95: the first waiter has ceased to trust the masters since it queued. What they hand it counts
// for nobody, so it gives that up, and the next one has the lock. That one has no restart guard.
func TestReal_L95_who_ceased_to_trust_the_masters_keeps_no_lock_of_any_kind(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			t.Run("and knows it", func(t *testing.T) { mustPassOverASceptic(t, k, true) })
			t.Run("and learns it now", func(t *testing.T) { mustPassOverASceptic(t, k, false) })
		})
	}
}

func mustPassOverASceptic(t *testing.T, k aKind, knows bool) {
	masters, log := startMasters(t, 3), &diary{}
	long, guard := redlock.WithTTL(30*time.Minute), redlock.WithRestartGuard(time.Hour) // nobody asks again by itself
	declareNew(t, redistest.URLs(masters), long, guard)
	holder, sceptic := masters.client(t, long), masters.client(t, long, guard, redlock.WithLogger(slog.New(log)))
	earlier := lock(t, holder.Mutex("earlier"))
	next := lockLater(t, sceptic.Mutex("earlier")) // it listens from now on, and need not look whether it does
	eventually(t, "it listens", func() bool { return masters.listeners(t) == len(masters) })
	unlocks(t, earlier)
	unlocks(t, next())
	lease := k.rival(t, holder)
	eventually(t, "all masters store it", func() bool { return masters.allStore(t) })
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() {
		if _, err := k.lock(waiting, sceptic); waiting.Err() == nil {
			t.Errorf("the wait of who trusts nobody ended: %v", err)
		}
	}()
	eventually(t, "it is queued", func() bool { return masters.queuedFor(t, k.name, 1) })
	heir, result := masters.client(t, long), make(chan *redlock.Lease, 1)
	go func() { result <- k.holds(t, heir) }()
	eventually(t, "the next one is queued", func() bool { return masters.queuedFor(t, k.name, 2) })
	masters.doAll(t, "DEL", "redlock:marker")
	for _, s := range masters {
		eventually(t, "it knows", func() bool { return !knows || log.said("quarantined", s.Addr()) })
	}

	unlocks(t, lease)

	unlocks(t, arrival(t, "the lock", result))
}

// L98: a master was full, so that many fair waiters are not queued there, when another one loses its memory. The
// first waiters must ask the full one again, although the other one reports missed messages all the time.
func TestReal_L98_fair_locks_go_on_when_a_master_was_full_and_another_loses_its_memory(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	opts := []redlock.Option{redlock.WithTTL(30 * time.Minute), redlock.WithRestartGuard(30 * time.Minute), redlock.WithNodeTimeout(200 * time.Millisecond)}
	declareNew(t, redistest.URLs(ms), opts...)
	working, stop := context.WithCancel(ctx)
	var callers sync.WaitGroup
	turns := map[string]*atomic.Int64{"a": {}, "b": {}, "busy": {}}
	for range 6 {
		c := ms.client(t, opts...)
		for name, n := range turns {
			m := c.Mutex(name)
			if len(name) == 1 {
				m = c.Mutex(name, redlock.Fair())
			}
			for range 2 {
				callers.Go(func() {
					for working.Err() == nil {
						if l, err := m.Lock(working); err == nil {
							time.Sleep(2 * time.Millisecond)
							l.Unlock(ctx)
							n.Add(1)
						}
					}
				})
			}
		}
	}
	goOn := func(when string) {
		t.Helper()
		for name, n := range turns {
			before := n.Load()
			eventually(t, name+" is handed over "+when, func() bool { return n.Load() > before+40 })
		}
	}
	goOn("while all is well")
	do(t, ms[0], "CONFIG", "SET", "maxmemory", "1")
	goOn("while a master is full")
	do(t, ms[0], "CONFIG", "SET", "maxmemory", "0")
	time.Sleep(20 * time.Millisecond) // some queue there, and others do not yet
	ms[1].RestartEmpty()
	goOn("afterwards")
	stop()
	callers.Wait()
}
