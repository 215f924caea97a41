package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

// keeping is a number of leases that are held and renewed for a time.
type keeping struct {
	leases   int
	ttl      time.Duration
	lasts    time.Duration
	restarts time.Duration // how often a master restarts empty; 0: never
}

// rolling restarts a master as soon as the one before it may vote again, and
// the client has put all keys back.
func rolling(size Size) keeping {
	k := keeping{leases: size.Leases, ttl: defaults.TTL, lasts: size.Duration, restarts: defaults.TTL * 4 / 3}
	if k.lasts < 3*k.restarts {
		k.ttl, k.restarts = 5*time.Second, 8*time.Second
	}
	return k
}

func quiet(size Size) keeping {
	return keeping{leases: size.Many, ttl: 10 * time.Second, lasts: size.Duration}
}

// keep takes all leases, keeps them, and gives them back.
func (t *trial) keep(ctx context.Context, k keeping) error {
	var events tallies
	t.sample("before")
	client, err := redlock.Dial(ctx, t.addrs, redlock.WithTTL(k.ttl), redlock.WithNodeTimeout(keepTimeout),
		redlock.WithObserver(events.observe), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer client.Close()
	leases, err := t.take(ctx, client, k)
	if err != nil {
		return err
	}
	// Keys are still being put back, or renewed for the first time.
	wait(ctx, k.ttl)
	first := t.sample("held")
	events.reset()
	restarts := t.hold(ctx, k)
	last := t.sample("at the end")
	t.flat(first, last)
	t.figure("leases lost", "%d of %d", events.lost.Load(), k.leases)
	t.figure("renewals", "%d, %d of them did not succeed at once", events.renewed.Load(), events.failed.Load())
	t.figure("keys put back", "%d", events.repaired.Load())
	if k.restarts > 0 {
		t.figure("restarts", "%d", restarts)
	}
	if n := events.lost.Load(); n > 0 {
		t.found("%d leases were lost", n)
	}
	failed := each(len(leases), func(i int) error { return leases[i].Unlock(ctx) })
	t.figure("unlocks that failed", "%d", len(failed))
	t.noKeys(t.sample("unlocked"))
	client.Close()
	leases = nil
	t.sample("closed")
	return nil
}

// keepTimeout is generous: client and masters share a small machine.
const keepTimeout = 500 * time.Millisecond

// take locks all names.
func (t *trial) take(ctx context.Context, client *redlock.Client, k keeping) ([]*redlock.Lease, error) {
	leases := make([]*redlock.Lease, k.leases)
	begin := time.Now()
	failed := each(k.leases, func(i int) (err error) {
		leases[i], err = client.Mutex(fmt.Sprintf("lease-%d", i)).Lock(ctx)
		return err
	})
	t.figure("taken in", "%v", time.Since(begin).Round(10*time.Millisecond))
	return leases, errors.Join(failed...)
}

// hold lets time pass, and masters restart one after the other.
func (t *trial) hold(ctx context.Context, k keeping) (restarts int) {
	begin := time.Now()
	next := k.restarts
	for time.Since(begin) < k.lasts && ctx.Err() == nil {
		if next > 0 && time.Since(begin) >= next && time.Since(begin)+k.restarts < k.lasts {
			m := t.masters[restarts%len(t.masters)]
			m.Kill()
			wait(ctx, time.Second)
			m.Restart()
			restarts++
			next += k.restarts
		}
		t.progress(float64(time.Since(begin))/float64(k.lasts), "holding")
		wait(ctx, 250*time.Millisecond)
	}
	return restarts
}

// tallies counts what a client observes.
type tallies struct {
	renewed, failed, repaired, lost atomic.Int64
}

func (c *tallies) reset() {
	for _, n := range []*atomic.Int64{&c.renewed, &c.failed, &c.repaired} {
		n.Store(0)
	}
}

func (c *tallies) observe(e redlock.Event) {
	switch e.Kind {
	case redlock.LeaseRenewed:
		c.renewed.Add(1)
		if e.Err != nil {
			c.failed.Add(1)
		}
	case redlock.NodeRepaired:
		c.repaired.Add(1)
	case redlock.LeaseLost:
		c.lost.Add(1)
	}
}

// workers is how many callers do things that are to be done often.
const workers = 64

// each calls do for every number below n, from several goroutines, and returns
// what failed.
func each(n int, do func(i int) error) (failed []error) {
	var all sync.WaitGroup
	var next atomic.Int64
	var mu sync.Mutex
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return failed
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
