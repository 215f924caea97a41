package explore

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// World is a few masters and clients, what each client does, and what goes
// wrong: so little that every order of its events can be tried.
type World struct {
	Name  string
	About string

	masters int               // three if zero
	kind    simulate.LockKind // plain if empty; a semaphore has one permit, and a Multi two locks
	readers []bool            // of a read-write lock: which clients read
	ahead   bool              // of a fenced lock: the counter of the last master
	clients []func(c *explorer)
	faults  []mishap

	unsafe    seam.Unsafe
	lacks     weaker.Lacks
	unguarded bool // masters grant immediately after a memory loss
}

// mishap is something that goes wrong once in every run, at any moment. One at the
// very end changes nothing, as if it had not happened.
type mishap struct {
	kind           strandKind
	client, master int8
}

func aTick(client int) mishap          { return mishap{strandTick, int8(client), 0} }
func aCrash(client int) mishap         { return mishap{strandCrash, int8(client), 0} }
func aReset(client, master int) mishap { return mishap{strandReset, int8(client), int8(master)} }
func aLoss(master int) mishap          { return mishap{strandForget, 0, int8(master)} }

// aSuspend is a tick that the monotonic clock does not see.
func aSuspend(client int) mishap { return mishap{strandTick, int8(client), 1} }

// prepareFaults puts every fault of the world into its strand.
func (x *miniature) prepareFaults() {
	for _, f := range x.world.faults {
		name := strandName{kind: f.kind, client: f.client, master: f.master}
		host := f.client
		var what func()
		switch c := x.clients[f.client]; f.kind {
		case strandTick:
			asleep := f.master == 1
			name.master = 0
			what = func() { c.tick(asleep) }
		case strandCrash:
			what = c.crashes
		case strandReset:
			what = c.tethers[f.master].breaks
		case strandForget:
			name.client, host = 0, x.masters[f.master].host()
			what = x.masters[f.master].forget
		}
		x.put(name, host, what).lazy = true
	}
}

// tick moves the clock to the next instant at which something is due. In a
// suspend only the wall clock moves, to the end of all pledges.
func (c *explorer) tick(asleep bool) {
	c.run.moved()
	if c.dead() {
		return
	}
	if !asleep {
		if d := c.untilNext(); d > 0 {
			c.advance(d)
		}
		return
	}
	mono := c.clock.mono
	c.advance(exploredTTL)
	c.clock.mono = mono
}

// Worlds are the worlds that are explored.
var Worlds = append(ofPlain, ofKinds()...)

var ofPlain = []*World{
	{
		Name: "try", About: "two clients try, and unlock what they got",
		clients: []func(*explorer){tryOnce, tryOnce},
	},
	{
		Name: "extend", About: "a holder extends and unlocks while another tries",
		clients: []func(*explorer){extendOnce, tryOnce},
	},
	{
		Name: "wait", About: "a client locks and unlocks while another waits",
		clients: []func(*explorer){lockOnce, lockAndKeep},
	},
	{
		Name: "late", About: "a node timeout passes for a client while it tries and unlocks",
		clients: []func(*explorer){tryOnce, tryAndKeep}, faults: []mishap{aTick(0)},
	},
	{
		Name: "expire", About: "time passes for a holder, and its keys expire while another tries",
		clients: []func(*explorer){tryAndKeep, tryAndKeep}, faults: []mishap{aTick(0), aTick(0)},
	},
	{
		Name: "hold", About: "time passes for a client alone while it tries and holds, and its keys expire",
		clients: []func(*explorer){tryAndKeep}, faults: []mishap{aTick(0), aTick(0), aTick(0)},
	},
	{
		Name: "late-extend", About: "time passes for a client alone while it extends, and its keys expire",
		masters: 2, clients: []func(*explorer){extendAndKeep}, faults: []mishap{aTick(0), aTick(0), aTick(0)},
	},
	{
		Name: "suspend", About: "a client is suspended for a TTL while it tries",
		clients: []func(*explorer){tryAndKeep, tryAndKeep}, faults: []mishap{aSuspend(0)},
	},
	{
		Name: "reset", About: "a connection breaks while its client tries, unlocks and tries again",
		clients: []func(*explorer){tryTwiceAndKeep}, faults: []mishap{aReset(0, 0)},
	},
	{
		Name: "reset-both", About: "a connection breaks while its client and another try, and unlock what they got",
		clients: []func(*explorer){tryOnce, tryOnce}, faults: []mishap{aReset(0, 0)},
	},
	{
		Name: "crash", About: "a client crashes while it tries, extends or unlocks, and its keys expire",
		clients: []func(*explorer){extendOnce, tryAndKeep}, faults: []mishap{aCrash(0)},
	},
	{
		Name: "forget", About: "a master forgets while a holder extends",
		clients: []func(*explorer){extendAndKeep, tryAndKeep}, faults: []mishap{aLoss(0)},
	},
	{
		Name: "forget-late", About: "a master forgets while time passes for a client alone, which extends",
		masters: 2, clients: []func(*explorer){extendAndKeep}, faults: []mishap{aLoss(0), aTick(0), aTick(0), aTick(0)},
	},
}

// ofKinds returns the worlds of the kinds of locks other than plain ones.
func ofKinds() (worlds []*World) {
	try := []func(*explorer){tryOnce, tryOnce}
	wait := []func(*explorer){lockOnce, lockAndKeep}
	extend := []func(*explorer){extendOnce, tryOnce}
	for _, kind := range simulate.LockKinds {
		masters, wait := 3, wait
		switch kind {
		case simulate.PlainLock, simulate.ReadWriteLock, // which have worlds of their own
			simulate.ReentrantLock, simulate.Latch, simulate.Election: // nested calls ask no master; the other two are not locks
			continue
		case simulate.CachedLock: // its lease is renewed until Unlock, so both unlock
			masters, wait = 2, []func(*explorer){lockOnce, lockOnce}
		}
		worlds = append(worlds,
			&World{Name: string(kind) + "-try", About: "as try, with locks of this kind", kind: kind, masters: masters, clients: try},
			&World{Name: string(kind) + "-extend", About: "as extend, with locks of this kind", kind: kind, masters: masters, clients: extend},
			&World{Name: string(kind) + "-wait", About: "as wait, with locks of this kind", kind: kind, masters: 2, clients: wait},
		)
	}
	worlds = append(worlds, &World{Name: "fenced-ahead", About: "as try, with fenced locks, and the counter of one master is ahead",
		kind: simulate.FencedLock, ahead: true, clients: try})
	writerFirst, readerFirst := []bool{false, true}, []bool{true, false}
	return append(worlds,
		&World{Name: "read-write-try", About: "a writer and a reader try, and unlock what they got",
			kind: simulate.ReadWriteLock, readers: writerFirst, clients: try},
		&World{Name: "read-write-extend", About: "a reader extends and unlocks while a writer tries",
			kind: simulate.ReadWriteLock, readers: readerFirst, clients: extend},
		&World{Name: "downgrade", About: "a writer goes on as a reader and unlocks while another reader tries",
			kind: simulate.ReadWriteLock, readers: writerFirst, clients: []func(*explorer){downgradeOnce, tryOnce}},
		&World{Name: "writer-wait", About: "a reader locks and unlocks while a writer waits",
			kind: simulate.ReadWriteLock, readers: readerFirst, masters: 2, clients: wait},
		&World{Name: "reader-wait", About: "a writer locks and unlocks while a reader waits",
			kind: simulate.ReadWriteLock, readers: writerFirst, masters: 2, clients: wait},
	)
}

// Find returns the small world of that name, or nil.
func Find(name string) *World {
	for _, w := range Worlds {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// KnownBad is a small world without a protection, in which the exploration must
// find a broken promise.
type KnownBad struct {
	Name  string
	world string
	spoil func(w *World)
}

// World returns the world without the protection.
func (b *KnownBad) World() *World {
	w := *Find(b.world)
	b.spoil(&w)
	return &w
}

// KnownBads has one for each protection that can be switched off.
var KnownBads = []*KnownBad{
	{"half of the masters is enough", "try", func(w *World) { w.lacks.Majority = true }},
	{"release without comparing", "try", func(w *World) { w.lacks.Comparing = true }},
	{"no release after a failed attempt", "try", func(w *World) { w.lacks.Discard = true }},
	{"one value for all attempts", "reset", func(w *World) { w.lacks.FreshValue = true }},
	{"elapsed time read before the votes are in", "hold", func(w *World) { w.unsafe.EarlyElapsed = true }},
	{"no drift allowance", "hold", func(w *World) { w.lacks.Allowance = true }},
	{"elapsed time without the wall clock", "suspend", func(w *World) { w.lacks.WallClock = true }},
	{"the deadline moves when the renewal is sent", "late-extend", func(w *World) { w.lacks.Answers = true }},
	{"keys that were lost are not put back", "forget", func(w *World) { w.lacks.Repair = true }},
	{"absent keys count as extended", "forget-late", func(w *World) { w.lacks.OwnKeysOnly = true }},
	{"a writer is a reader only when all masters know", "downgrade", func(w *World) { w.lacks.Told = true }},
	{"masters that forgot grant at once", "forget", func(w *World) { w.unguarded = true }},
}

var background = context.Background()

// way has the methods by which a client takes its lock.
type way struct {
	lock, try func(context.Context) (*redlock.Lease, error)
}

// locker returns how the client takes the lock of its world.
func (c *explorer) locker() way {
	w := c.run.world
	switch {
	case w.kind == simulate.ReadWriteLock:
		m := c.api.RWMutex(exploredLock, plan.OptionsOf[redlock.RWMutexOption](w.kind, redlock.NoRenew())...)
		if int(c.index) < len(w.readers) && w.readers[c.index] {
			return way{m.RLock, m.TryRLock}
		}
		return way{m.Lock, m.TryLock}
	case w.kind.IsSemaphore():
		s := c.api.Semaphore(exploredLock, 1, plan.OptionsOf[redlock.SemaphoreOption](w.kind, redlock.NoRenew())...)
		return way{
			func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, 1) },
			func(ctx context.Context) (*redlock.Lease, error) { return s.TryAcquire(ctx, 1) },
		}
	case w.kind.IsMulti():
		m := c.api.Multi([]string{exploredLock, exploredLock + "2"}, plan.OptionsOf[redlock.MultiOption](w.kind, redlock.NoRenew())...)
		return way{m.Lock, m.TryLock}
	case w.kind == simulate.CachedLock:
		m := c.api.Mutex(exploredLock, redlock.Cached())
		return way{m.Lock, m.TryLock}
	}
	m := c.api.Mutex(exploredLock, plan.OptionsOf[redlock.MutexOption](w.kind, redlock.NoRenew())...)
	return way{m.Lock, m.TryLock}
}

func tryOnce(c *explorer) {
	if l := c.try(); l != nil {
		c.work()
		c.unlock(l)
	}
}

func tryTwiceAndKeep(c *explorer) {
	tryOnce(c)
	c.try()
}

func tryAndKeep(c *explorer) { c.try() }

func lockOnce(c *explorer) {
	if l := c.got(c.locker().lock(background)); l != nil {
		c.work()
		c.unlock(l)
	}
}

func lockAndKeep(c *explorer) { c.got(c.locker().lock(background)) }

func extendOnce(c *explorer) {
	if l := c.try(); l != nil {
		c.extend(l)
		c.unlock(l)
	}
}

func downgradeOnce(c *explorer) {
	if l := c.try(); l != nil {
		c.writes = c.run.world.lacks.Told
		err := c.api.RWMutex(exploredLock).Downgrade(background, l)
		c.writes = c.writes && err != nil
		c.unlock(l)
	}
}

func extendAndKeep(c *explorer) {
	if l := c.try(); l != nil {
		c.extend(l)
	}
}

func (c *explorer) try() *redlock.Lease { return c.got(c.locker().try(background)) }

func (c *explorer) got(l *redlock.Lease, err error) *redlock.Lease {
	if err != nil {
		return nil
	}
	c.run.check.holds(c, l)
	return l
}

// work is what the lock is held for. It ends when the search says so.
func (c *explorer) work() {
	over := make(chan struct{})
	c.run.put(strandName{kind: strandWork, client: c.index}, c.host(), func() { close(over) })
	c.wait(background, over)
}

func (c *explorer) extend(l *redlock.Lease) {
	err := l.Extend(background, exploredTTL)
	c.run.check.extended(l, err == nil)
}

func (c *explorer) unlock(l *redlock.Lease) {
	c.run.check.lets(l)
	err := l.Unlock(background)
	if errors.Is(err, redlock.ErrNotHeld) {
		c.run.check.report(simulate.Custom, "the first Unlock of a lease says that it is not held", int(c.index))
	}
}
