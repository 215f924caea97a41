package simulate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/redlock"
)

// LockKind is the kind of lock that a schedule is about.
type LockKind string

// The kinds of locks.
const (
	PlainLock       LockKind = "plain"
	FencedLock      LockKind = "fenced"
	FairLock        LockKind = "fair"
	FairFencedLock  LockKind = "fair-fenced"
	MultiLock       LockKind = "multi" // some of three locks, all or none
	FencedMultiLock LockKind = "fenced-multi"
	ReadWriteLock   LockKind = "read-write"
	SemaphoreLock   LockKind = "semaphore" // n of k permits

	FencedSemaphoreLock LockKind = "fenced-semaphore"
	ReentrantLock       LockKind = "re-entrant" // a Mutex whose holder locks it again

	// Latches and elections have their own workloads.
	Latch    LockKind = "latch"
	Election LockKind = "election"
)

// LockKinds lists every kind of lock.
var LockKinds = []LockKind{
	PlainLock, FencedLock, FairLock, FairFencedLock, MultiLock, FencedMultiLock, ReadWriteLock, SemaphoreLock,
	FencedSemaphoreLock, ReentrantLock, Latch, Election,
}

// workload returns the workload of a latch or an election. It is nil for locks: clients
// then perform the actions of the schedule.
func (k LockKind) workload() func(p *Process, c *redlock.Client) {
	switch k {
	case Latch:
		return arriving(12)
	case Election:
		return campaigning()
	}
	return nil
}

// ParseLockKind returns the kind of lock of that name.
func ParseLockKind(s string) (LockKind, error) {
	if k := LockKind(s); slices.Contains(LockKinds, k) {
		return k, nil
	}
	return "", fmt.Errorf("kind %q: must be one of %s", s, listed(LockKinds))
}

// shares has, for each kind, how many of a thousand schedules are of it.
var shares = []struct {
	kind LockKind
	of   int
}{
	{PlainLock, 300}, {ReentrantLock, 50}, {FencedLock, 70}, {FairLock, 80}, {FairFencedLock, 70}, {MultiLock, 70}, {FencedMultiLock, 70},
	{ReadWriteLock, 90}, {SemaphoreLock, 60}, {FencedSemaphoreLock, 50}, {Latch, 45}, {Election, 45},
}

// drawLock draws the kind of lock of a schedule, and how many permits a semaphore has.
func (cfg *Config) drawLock(dice *stream) {
	rest := dice.below(1000)
	for _, s := range shares {
		if rest -= s.of; rest < 0 {
			setDefault(&cfg.Lock, s.kind)
			break
		}
	}
	setDefault(&cfg.permits, pick(dice, 1, 2, 2, 3, 5))
	cfg.resizes = cfg.resizes || cfg.Lock.IsSemaphore() && dice.chance(600)
}

// tells reports whether a master tells the first waiter of a free lock that it is its
// turn. The other kinds are handed over: the master gives the lock to that waiter.
func (k LockKind) tells() bool { return k.IsMulti() || !k.isMutex() }

// isMutex reports whether it is a redlock.Mutex.
func (k LockKind) isMutex() bool { return k != ReadWriteLock && !k.IsSemaphore() }

func (k LockKind) IsSemaphore() bool { return k == SemaphoreLock || k == FencedSemaphoreLock }

func (k LockKind) IsMulti() bool { return k == MultiLock || k == FencedMultiLock }

func (k LockKind) IsFair() bool { return k == FairLock || k == FairFencedLock }

func (k LockKind) IsFenced() bool {
	return k == FencedLock || k == FairFencedLock || k == FencedMultiLock || k == FencedSemaphoreLock
}

// names returns the names of the locks that there are.
func (cfg *Config) names() []string {
	n := cfg.locks
	if cfg.Lock.IsMulti() {
		n = 3
	}
	names := []string{lockName}
	for i := 1; i < n; i++ {
		names = append(names, lockName+strconv.Itoa(i))
	}
	return names
}

// ofKind draws the fields that only some kinds of locks have.
func (h habits) ofKind(a *Action, dice *stream, cfg *Config) {
	switch {
	case cfg.Lock.IsMulti():
		for _, name := range cfg.names() {
			if dice.chance(600) {
				a.Names = append(a.Names, name)
			}
		}
	case cfg.Lock == ReadWriteLock:
		a.Read = dice.chance(600)
		a.Downgrade = !a.Read && dice.chance(300)
	case cfg.Lock.IsSemaphore():
		a.Permits = 1
		if dice.chance(400) {
			a.Permits += dice.below(cfg.permits)
		}
		if cfg.resizes && dice.chance(h.resizes) {
			a.Resize = 1 + dice.below(5)
		}
	case cfg.Lock == ReentrantLock:
		a.Nested = dice.chance(500)
	}
	if !cfg.Lock.isMutex() {
		a.Inspect = false
		if a.How == ByDo {
			a.How = ByLock
		}
	}
}

// names returns the names of the locks that the action takes: more than one only for a
// Multi.
func (a *Action) names() []string {
	switch {
	case len(a.Names) > 0:
		return a.Names
	case a.Lock != "":
		return []string{a.Lock}
	}
	return []string{lockName}
}

// closing returns what every client does after the healing: it takes each lock once
// more, in every way.
func (cfg *Config) closing(names []string) []Action {
	var list []Action
	if cfg.Lock.IsMulti() {
		list = append(list, Action{Names: cfg.names()})
	}
	for _, name := range names {
		list = append(list, Action{Lock: name, Permits: cfg.permits})
		if cfg.Lock == ReadWriteLock {
			list = append(list, Action{Lock: name, Read: true})
		}
	}
	return list
}

// locker has the methods by which an action takes its lock.
type locker struct {
	lock, try func(context.Context) (*redlock.Lease, error)
}

// locker returns how an action takes its lock. permits is how many the client believes a
// semaphore has.
func (cfg *Config) locker(c *redlock.Client, a Action, permits int) locker {
	name := a.names()[0]
	switch cfg.Lock {
	case ReadWriteLock:
		m := c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...)
		if a.Read {
			return locker{m.RLock, m.TryRLock}
		}
		return locker{m.Lock, m.TryLock}
	case SemaphoreLock, FencedSemaphoreLock:
		s, n := c.Semaphore(name, permits, optionsOf[redlock.SemaphoreOption](cfg, a)...), min(max(1, a.Permits), permits)
		return locker{
			func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, n) },
			func(ctx context.Context) (*redlock.Lease, error) { return s.TryAcquire(ctx, n) },
		}
	}
	m := cfg.mutex(c, a)
	return locker{m.Lock, m.TryLock}
}

// mutex returns the Mutex that an action takes.
func (cfg *Config) mutex(c *redlock.Client, a Action) *redlock.Mutex {
	if cfg.Lock.IsMulti() {
		return c.Multi(a.names(), optionsOf[redlock.MultiOption](cfg, a)...)
	}
	return c.Mutex(a.names()[0], optionsOf[redlock.MutexOption](cfg, a)...)
}
