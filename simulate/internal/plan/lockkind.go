package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
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
	CachedLock          LockKind = "cached"     // a Mutex that stays in a process, for most of its callers

	// Latches and elections have their own workloads.
	Latch    LockKind = "latch"
	Election LockKind = "election"

	GroupsLock LockKind = "groups" // locks of several groups of masters, between which they move
)

// LockKinds lists every kind of lock.
var LockKinds = []LockKind{
	PlainLock, FencedLock, FairLock, FairFencedLock, MultiLock, FencedMultiLock, ReadWriteLock, SemaphoreLock,
	FencedSemaphoreLock, ReentrantLock, CachedLock, Latch, Election, GroupsLock,
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
	{PlainLock, 235}, {GroupsLock, 15}, {CachedLock, 50}, {ReentrantLock, 50}, {FencedLock, 70}, {FairLock, 80}, {FairFencedLock, 70}, {MultiLock, 70}, {FencedMultiLock, 70},
	{ReadWriteLock, 90}, {SemaphoreLock, 60}, {FencedSemaphoreLock, 50}, {Latch, 45}, {Election, 45},
}

// drawLock draws the kind of lock of a schedule, and how many permits a semaphore has.
func (cfg *Config) drawLock(dice *world.Dice) {
	rest := dice.Below(1000)
	for _, s := range shares {
		if rest -= s.of; rest < 0 {
			SetDefault(&cfg.Lock, s.kind)
			break
		}
	}
	SetDefault(&cfg.Permits, pick(dice, 1, 2, 2, 3, 5))
	cfg.Resizes = cfg.Resizes || cfg.Lock.IsSemaphore() && dice.Chance(600)
}

// Tells reports whether a master tells the first waiter of a free lock that it is its
// turn. The other kinds are handed over: the master gives the lock to that waiter.
func (k LockKind) Tells() bool { return k.IsMulti() || !k.isMutex() }

// isMutex reports whether it is a redlock.Mutex.
func (k LockKind) isMutex() bool { return k != ReadWriteLock && !k.IsSemaphore() }

func (k LockKind) IsSemaphore() bool { return k == SemaphoreLock || k == FencedSemaphoreLock }

func (k LockKind) IsMulti() bool { return k == MultiLock || k == FencedMultiLock }

func (k LockKind) IsFair() bool { return k == FairLock || k == FairFencedLock }

func (k LockKind) IsFenced() bool {
	return k == FencedLock || k == FairFencedLock || k == FencedMultiLock || k == FencedSemaphoreLock
}

// LockNames returns the names of the locks that there are.
func (cfg *Config) LockNames() []string {
	n := cfg.locks
	if cfg.Lock.IsMulti() {
		n = 3
	}
	names := []string{LockName}
	for i := 1; i < n; i++ {
		names = append(names, LockName+strconv.Itoa(i))
	}
	return names
}

// ofKind draws the fields that only some kinds of locks have.
func (h habits) ofKind(a *Action, dice *world.Dice, cfg *Config) {
	switch {
	case cfg.Lock.IsMulti():
		for _, name := range cfg.LockNames() {
			if dice.Chance(600) {
				a.Names = append(a.Names, name)
			}
		}
	case cfg.Lock == ReadWriteLock:
		a.Read = dice.Chance(600)
		a.Downgrade = !a.Read && dice.Chance(300)
	case cfg.Lock.IsSemaphore():
		a.Permits = 1
		if dice.Chance(400) {
			a.Permits += dice.Below(cfg.Permits)
		}
		if cfg.Resizes && dice.Chance(h.resizes) {
			a.Resize = 1 + dice.Below(5)
		}
	case cfg.Lock == ReentrantLock:
		a.Nested = dice.Chance(500)
	case cfg.Lock == CachedLock:
		if a.Cached = dice.Chance(800); a.Cached {
			a.Renew, a.AtLeast, a.Grace, a.Overrun = true, 0, 0, 0
		}
	}
	if !cfg.Lock.isMutex() {
		a.Inspect = false
		if a.How == ByDo {
			a.How = ByLock
		}
	}
}

// LockNames returns the names of the locks that the action takes: more than one only for a
// Multi.
func (a *Action) LockNames() []string {
	switch {
	case len(a.Names) > 0:
		return a.Names
	case a.Lock != "":
		return []string{a.Lock}
	}
	return []string{LockName}
}

// Closing returns what every client does after the healing: it takes each lock once
// more, in every way.
func (cfg *Config) Closing(names []string) []Action {
	var list []Action
	if cfg.Lock.IsMulti() {
		list = append(list, Action{Names: cfg.LockNames()})
	}
	for _, name := range names {
		list = append(list, Action{Lock: name, Permits: cfg.Permits})
		if cfg.Lock == ReadWriteLock {
			list = append(list, Action{Lock: name, Read: true})
		}
	}
	return list
}

// LockName is the name of the lock, and with a number that of further ones.
const LockName = "lock"

// OptionsOf returns the options that make a lock of this kind, and more, as the type of
// option that O is.
func OptionsOf[O any](k LockKind, more ...redlock.LockOption) (opts []O) {
	var all []any
	for _, opt := range more {
		all = append(all, opt)
	}
	if k.IsFenced() {
		all = append(all, redlock.Fenced())
	}
	if k.IsFair() {
		all = append(all, redlock.Fair())
	}
	if k == ReentrantLock {
		all = append(all, redlock.Reentrant())
	}
	for _, opt := range all {
		opts = append(opts, opt.(O))
	}
	return opts
}
