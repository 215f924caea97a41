package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// What Held reports.
const (
	BytesHeld      Metric = "bytes_each"      // heap and stacks, for each lock held
	GoroutinesHeld Metric = "goroutines_held" // that the client has while it holds them all
	CoreShare      Metric = "core_percent"    // of one core, to keep them renewed
	Renewals       Metric = "renewals_per_s"
	Lost           Metric = "lost" // leases that ended without an Unlock
)

// Held keeps many locks at the same time, each renewed by the library, and measures what
// that costs. Its length should be the time between two renewals of a lock, or
// a multiple: RenewalPeriod.
func Held(locks int) Workload {
	return Workload{
		Name: "held", Title: fmt.Sprintf("keep %d locks renewed", locks),
		Run: func(ctx context.Context, t *Trial) error { return t.held(ctx, locks) },
	}
}

// RenewalPeriod is the mean time between two renewals of a lock: a quarter of
// the TTL and between a sixteenth and an eighth.
const RenewalPeriod = TTL/4 + TTL*3/32

// watched is a Lease that knows its loss, since it renews itself.
type watched interface{ Lost() bool }

// Lost reports whether the lease ended by itself.
func (l redlockLease) Lost() bool {
	err := l.l.Err()
	return err != nil && !errors.Is(err, redlock.ErrUnlocked)
}

func (t *Trial) held(ctx context.Context, locks int) error {
	before := runtime.NumGoroutine()
	client, err := t.Subject.Open(ctx, t.URLs())
	if err != nil {
		return err
	}
	defer client.Close()
	// What grows with the number of callers must grow before locks are counted.
	if err := spread(1000, func(i int) error { return once(ctx, client.Mutex(fmt.Sprintf("%swarm%d", t.Prefix, i))) }); err != nil {
		return err
	}
	leases := make([]Lease, locks)
	empty := live()
	err = spread(locks, func(i int) (err error) {
		leases[i], err = client.Mutex(fmt.Sprintf("%s%d", t.Prefix, i)).Lock(ctx)
		return err
	})
	if err != nil {
		return err
	}
	t.Set(BytesHeld, (live()-empty)/float64(locks))
	t.Set(GoroutinesHeld, float64(runtime.NumGoroutine()-before))
	t.watchOver(leases)
	err = spread(locks, func(i int) error { return leases[i].Unlock(ctx) })
	err = errors.Join(err, client.Close())
	t.Set(Leaked, float64(settleGoroutines(before, time.Second)))
	return err
}

func once(ctx context.Context, m Mutex) error {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// live is the memory in use.
func live() float64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return float64(mem.HeapAlloc + mem.StackInuse)
}

// watchOver measures one period in which every lock is renewed once. The locks
// were all taken at about the same time; with the first second left out, the
// period ends between the first and the second renewal of each.
func (t *Trial) watchOver(leases []Lease) {
	time.Sleep(time.Second)
	count := t.countScripts()
	from := t.read()
	time.Sleep(t.Length)
	to := t.read()
	renewals := (t.countScripts() - count) / float64(len(t.Masters))
	seconds := to.at.Sub(from.at).Seconds()
	t.Set(CoreShare, 100*(to.client-from.client).Seconds()/seconds)
	if renewals > 0 {
		t.Set(Renewals, renewals/seconds)
	}
	lost := 0
	for _, l := range leases {
		if w, ok := l.(watched); ok && w.Lost() {
			lost++
		}
	}
	t.Set(Lost, float64(lost))
}

// spread calls f for 0 to n-1 on 64 goroutines and returns the first error.
func spread(n int, f func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, 64)
	for w := range errs {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil && errs[w] == nil {
					errs[w] = err
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
