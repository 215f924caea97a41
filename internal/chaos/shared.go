package chaos

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// A writer takes as much of the lock as there is, and a reader one part, of which
// there are enough for all.
const (
	allReaders = 1000
	oneReader  = 1
)

// shared has readers and writers, some of which go on as readers.
var shared = &Workload{
	Name:      "shared",
	Callers:   2,
	Locks:     []string{"shared"},
	Capacity:  allReaders,
	Simulated: simulate.ReadWriteLock,
	Turn: func(ctx context.Context, c *Caller) error {
		name := c.anyLock()
		m := c.client.RWMutex(name, c.lockOption())
		if c.rand.IntN(3) > 0 {
			if h := c.take(ctx, name, oneReader, m.RLock, m.TryRLock); h != nil {
				defer h.leave()
				sleep(ctx, c.upTo(c.ttl/4))
			}
			return nil
		}
		h := c.take(ctx, name, allReaders, m.Lock, m.TryLock)
		if h == nil {
			return nil
		}
		defer h.leave()
		err := h.update(name, c.upTo(20*time.Millisecond))
		if c.rand.IntN(3) == 0 {
			h.downgrade(ctx, m, oneReader)
			sleep(ctx, c.upTo(50*time.Millisecond))
		}
		return err
	},
	Check: (*History).lostUpdates,
}

// permits is a semaphore.
var permits = &Workload{
	Name:      "permits",
	Callers:   2,
	Locks:     []string{"permits"},
	Capacity:  3,
	Simulated: simulate.SemaphoreLock,
	Turn: func(ctx context.Context, c *Caller) error {
		if h := c.takePermits(ctx); h != nil {
			defer h.leave()
			sleep(ctx, c.upTo(c.ttl/4))
		}
		return nil
	},
}

// takePermits takes one or two permits of the workload's semaphore.
func (c *Caller) takePermits(ctx context.Context, opts ...redlock.SemaphoreOption) *Hold {
	name, n := c.anyLock(), 1+c.rand.IntN(2)
	s := c.client.Semaphore(name, c.workload.Capacity, append([]redlock.SemaphoreOption{c.lockOption()}, opts...)...)
	wait := func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, n) }
	try := func(ctx context.Context) (*redlock.Lease, error) { return s.TryAcquire(ctx, n) }
	return c.take(ctx, name, n, wait, try)
}
