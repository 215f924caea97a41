package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Pairs takes and releases free locks: so many callers of one client, each with
// a name of its own.
func Pairs(callers int) Workload {
	return Workload{
		Name:  PairsOf(callers),
		Title: "lock and unlock, " + howMany(callers),
		Run:   func(ctx context.Context, t *Trial) error { return t.pairs(ctx, callers) },
	}
}

func howMany(callers int) string {
	if callers == 1 {
		return "one caller"
	}
	return fmt.Sprintf("%d callers", callers)
}

// PairsOf is the name of Pairs(callers).
func PairsOf(callers int) string { return "pair/" + strconv.Itoa(callers) }

// warmUp is how many pairs each caller does before anything is measured:
// connections are made, scripts loaded, pools filled.
const warmUp = 20

// errWarmUp is what became of a library that leaves keys behind: it waits for
// itself.
var errWarmUp = fmt.Errorf("a caller %w from %d pairs", errStuck, warmUp)

func (t *Trial) pairs(ctx context.Context, callers int) error { return t.pairsOf(ctx, callers, "") }

// pairsOf is pairs, as a part of the workload.
func (t *Trial) pairsOf(ctx context.Context, callers int, part string) error {
	before := runtime.NumGoroutine()
	crew, err := t.hire(ctx, callers)
	if err != nil {
		return err
	}
	crew.times(ctx, warmUp)
	if ctx.Err() != nil {
		return errors.Join(errWarmUp, t.dismiss(crew, before))
	}
	runtime.GC()

	crew.reset()
	from := t.read()
	crew.forA(ctx, t.Length)
	to := t.read()

	t.cost(from, to, crew.pairs())
	t.latencies(part, crew.latency())
	return t.dismiss(crew, before)
}

// crew are callers of one client that take and release locks.
type crew struct {
	client Client
	names  []string
	all    []*caller
}

type caller struct {
	mutex   Mutex
	latency *hdrhistogram.Histogram
	failed  int64
	err     error // the last
}

func (t *Trial) hire(ctx context.Context, callers int) (*crew, error) {
	client, err := t.Subject.Open(ctx, t.URLs())
	if err != nil {
		return nil, err
	}
	c := &crew{client: client}
	for i := range callers {
		name := t.Prefix + strconv.Itoa(i)
		c.names = append(c.names, name)
		c.all = append(c.all, &caller{mutex: client.Mutex(name), latency: newHistogram()})
	}
	return c, nil
}

// pair takes and releases the lock once.
func (c *caller) pair(ctx context.Context) {
	began := time.Now()
	lease, err := c.mutex.Lock(ctx)
	if err == nil {
		err = lease.Unlock(ctx)
	}
	if err != nil {
		c.failed++
		c.err = err
		return
	}
	record(c.latency, time.Since(began))
}

// times has each caller do n pairs.
func (c *crew) times(ctx context.Context, n int) {
	var all sync.WaitGroup
	for _, caller := range c.all {
		all.Go(func() {
			for i := 0; i < n && ctx.Err() == nil; i++ {
				caller.pair(ctx)
			}
		})
	}
	all.Wait()
}

// forA has the callers do pairs for a while.
func (c *crew) forA(ctx context.Context, d time.Duration) {
	var over atomic.Bool
	wait := c.start(ctx, &over)
	time.Sleep(d)
	over.Store(true)
	wait()
}

// start has the callers do pairs until over. The function that it returns waits
// for them.
func (c *crew) start(ctx context.Context, over *atomic.Bool) (wait func()) {
	var all sync.WaitGroup
	for _, caller := range c.all {
		all.Go(func() {
			for !over.Load() && ctx.Err() == nil {
				caller.pair(ctx)
			}
		})
	}
	return all.Wait
}

func (c *crew) reset() {
	for _, caller := range c.all {
		caller.latency.Reset()
		caller.failed, caller.err = 0, nil
	}
}

// pairs is how many succeeded since reset.
func (c *crew) pairs() (n int64) {
	for _, caller := range c.all {
		n += caller.latency.TotalCount()
	}
	return n
}

func (c *crew) latency() *hdrhistogram.Histogram {
	sum := newHistogram()
	for _, caller := range c.all {
		sum.Merge(caller.latency)
	}
	return sum
}

func (c *crew) failures() (n int64, err error) {
	for _, caller := range c.all {
		n += caller.failed
		if caller.err != nil {
			err = caller.err
		}
	}
	return n, err
}

// dismiss closes the client and counts the goroutines and keys that it leaves.
func (t *Trial) dismiss(c *crew, goroutinesBefore int) error {
	t.failed(c.failures())
	err := c.client.Close()
	t.Set(Leaked, float64(settleGoroutines(goroutinesBefore, time.Second)))
	return errors.Join(err, t.countKeysLeft(c.names))
}

// failed reports operations that returned an error.
func (t *Trial) failed(n int64, last error) {
	t.Set(Failures, float64(n))
	if n > 0 {
		t.Note("%s failed, the last with: %v", operations(n), last)
	}
}

func operations(n int64) string {
	if n == 1 {
		return "1 operation"
	}
	return fmt.Sprintf("%d operations", n)
}

// countKeysLeft reports keys of locks that were all released, and deletes them.
func (t *Trial) countKeysLeft(names []string) error {
	if t.Subject.Keys != nil {
		var gone []string
		for _, name := range names {
			mustGo, _ := t.Subject.Keys(name)
			gone = append(gone, mustGo...)
		}
		names = gone
	}
	left, err := t.keysLeft(names)
	t.Set(Leftover, float64(left))
	if left > 0 {
		t.remove(names)
	}
	return err
}
