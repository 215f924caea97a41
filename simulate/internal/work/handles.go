package work

import (
	"context"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

// optionsOf returns the options of an action's lock, as those of one kind of lock.
func optionsOf[O any](cfg *plan.Config, a plan.Action) []O {
	var opts []redlock.LockOption
	if cfg.Polling {
		opts = append(opts, redlock.Polling(promises.LongestPoll/2, promises.LongestPoll))
	}
	if !a.Renew {
		opts = append(opts, redlock.NoRenew())
	}
	if a.TTL > 0 {
		opts = append(opts, redlock.TTL(a.TTL))
	}
	if a.Grace > 0 {
		opts = append(opts, redlock.StopWithin(a.Grace, a.Stop))
	}
	all := plan.OptionsOf[O](cfg.Lock, opts...)
	if keeps, ok := redlock.AtLeast(a.AtLeast).(O); ok && a.AtLeast > 0 {
		all = append(all, keeps)
	}
	if cached, ok := redlock.Cached().(O); ok && a.Cached {
		all = append(all, cached)
	}
	return all
}

// locker has the methods by which an action takes its lock.
type locker struct {
	lock, try func(context.Context) (*redlock.Lease, error)
}

// handles makes locks: a *redlock.Client or *redlock.Groups.
type handles interface {
	Mutex(name string, opts ...redlock.MutexOption) *redlock.Mutex
	Multi(names []string, opts ...redlock.MultiOption) *redlock.Mutex
	RWMutex(name string, opts ...redlock.RWMutexOption) *redlock.RWMutex
	Semaphore(name string, permits int, opts ...redlock.SemaphoreOption) *redlock.Semaphore
}

// lockerOf returns how an action takes its lock. permits is how many the client believes a
// semaphore has.
func lockerOf(cfg *plan.Config, c handles, a plan.Action, permits int) locker {
	name := a.LockNames()[0]
	switch cfg.Lock {
	case plan.GroupsLock:
		return shape(name).lockerOf(c, a)
	case plan.ReadWriteLock:
		m := c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...)
		if a.Read {
			return locker{m.RLock, m.TryRLock}
		}
		return locker{m.Lock, m.TryLock}
	case plan.SemaphoreLock, plan.FencedSemaphoreLock:
		s, n := c.Semaphore(name, permits, optionsOf[redlock.SemaphoreOption](cfg, a)...), min(max(1, a.Permits), permits)
		return locker{
			func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, n) },
			func(ctx context.Context) (*redlock.Lease, error) { return s.TryAcquire(ctx, n) },
		}
	}
	m := mutexOf(cfg, c, a)
	return locker{m.Lock, m.TryLock}
}

// mutexOf returns the Mutex that an action takes.
func mutexOf(cfg *plan.Config, c handles, a plan.Action) *redlock.Mutex {
	if cfg.Lock.IsMulti() {
		return c.Multi(a.LockNames(), optionsOf[redlock.MultiOption](cfg, a)...)
	}
	return c.Mutex(a.LockNames()[0], optionsOf[redlock.MutexOption](cfg, a)...)
}

// adopterOf returns how a lease of an action is adopted.
func adopterOf(cfg *plan.Config, c *redlock.Client, a plan.Action, permits int) func(context.Context, string) (*redlock.Lease, error) {
	name := a.LockNames()[0]
	switch {
	case cfg.Lock == plan.ReadWriteLock && a.Read:
		return c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...).RAdopt
	case cfg.Lock == plan.ReadWriteLock:
		return c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...).Adopt
	case cfg.Lock.IsSemaphore():
		return c.Semaphore(name, permits, optionsOf[redlock.SemaphoreOption](cfg, a)...).Adopt
	}
	return mutexOf(cfg, c, a).Adopt
}

// WorkloadOf returns the workload of a latch, an election or locks that move. It is nil for other locks: clients
// then perform the actions of the schedule.
func WorkloadOf(k plan.LockKind) func(p *promises.Caller, c *redlock.Client) {
	switch k {
	case plan.Latch:
		return arriving(12)
	case plan.Election:
		return campaigning()
	case plan.GroupsLock:
		return moving()
	}
	return nil
}
