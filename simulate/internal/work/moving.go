package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// shape is the name of a lock that moves between groups. The name says of which kind the lock is, so that
// locks of several kinds move.
type shape string

// shareOfPermits is how many permits a semaphore has that moves.
const shareOfPermits = 2

// at is the place of the name among the names.
func (s shape) at() int {
	suffix := strings.TrimPrefix(string(s), plan.LockName)
	if suffix == "" {
		return 0
	}
	return int(suffix[0] - '0')
}

func (s shape) isSemaphore() bool { return s.at() == 3 }

// isExclusive reports whether one client has the lock alone, with a fencing token if it is fenced.
func (s shape) isExclusive(a plan.Action) bool { return !s.isSemaphore() && !a.Read }

func (s shape) lockerOf(c handles, a plan.Action) locker {
	name := string(s)
	switch s.at() {
	case 1:
		m := c.RWMutex(name)
		if a.Read {
			return locker{m.RLock, m.TryRLock}
		}
		return locker{m.Lock, m.TryLock}
	case 2:
		m := c.Mutex(name, redlock.Fair(), redlock.Fenced())
		return locker{m.Lock, m.TryLock}
	case 3:
		p := c.Semaphore(name, shareOfPermits)
		return locker{
			func(ctx context.Context) (*redlock.Lease, error) { return p.Acquire(ctx, 1) },
			func(ctx context.Context) (*redlock.Lease, error) { return p.TryAcquire(ctx, 1) },
		}
	case 4:
		m := c.Mutex(name, redlock.Cached())
		return locker{m.Lock, m.TryLock}
	}
	m := c.Mutex(name, redlock.Fenced())
	return locker{m.Lock, m.TryLock}
}

// handlesOf returns what makes the locks of a client.
func handlesOf(c *promises.Client) handles {
	if c.Groups != nil {
		return c.Groups
	}
	return c.API
}

// moving is the workload of locks that move between groups of masters: clients take them in any order,
// write to what they protect, and give them back. Whatever the masters and the operators do, a lock has
// one holder, whose token is above all before.
func moving() func(p *promises.Caller, c *redlock.Client) {
	w := &whereabouts{of: map[string]whereabout{}}
	return func(p *promises.Caller, _ *redlock.Client) {
		dice, cfg := p.Client.Dice, p.Scene.Config
		pace := dice.Spread(cfg.TTL/50, cfg.TTL/2)
		for !p.Scene.Healed {
			p.Sleep(context.Background(), dice.Between(0, 4*pace))
			names := cfg.LockNames()
			a := plan.Action{
				Lock:     names[dice.Below(len(names))],
				Read:     dice.Chance(500),
				Patience: dice.Spread(cfg.TTL/4, 8*cfg.TTL),
				Hold:     dice.Between(0, 2*pace),
				Extend:   dice.Chance(200),
			}
			if dice.Chance(100) {
				a.Hold = dice.Between(cfg.TTL, 4*cfg.TTL)
			}
			if dice.Chance(300) {
				a.How = plan.ByTryLock
			}
			inOneGroup(p, w, a)
		}
	}
}

// inOneGroup takes a lock where it is, works and gives it back.
func inOneGroup(p *promises.Caller, w *whereabouts, a plan.Action) {
	s := shape(a.Lock)
	l := s.lockerOf(p.Client.Groups, a)
	take := l.lock
	if a.How == plan.ByTryLock {
		take = l.try
	}
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	defer cancel()
	var lease *redlock.Lease
	var err error
	p.Scene.Stats.Calls++
	before := w.update(p.Scene, a.Lock)
	p.Call(func() { lease, err = take(ctx) })
	if after := w.update(p.Scene, a.Lock); before == after && after.group != "" && p.Scene.World.Now-after.since > tellsWithin && undisturbed(p) {
		found := !errors.Is(err, redlock.ErrMoved) && !errors.Is(err, redlock.ErrNoQuorum)
		p.Check(tally.StaysUndisturbed, found, "%s could not take %q, which has stayed in group %s: %v", p.Name(), a.Lock, after.group, err)
	}
	if err != nil {
		return
	}
	var letGo func()
	if s.isSemaphore() {
		letGo = p.HoldingSome(lease, 1, shareOfPermits)
	} else {
		letGo = p.Holding(lease)
	}
	storage := p.Scene.Storage(a.Lock)
	if s.isExclusive(a) {
		storage.Fence(lease.Token())
	}
	version := storage.Read()
	p.During(lease.Done(), a.Hold)
	if a.Extend {
		p.Call(func() { lease.Extend(context.Background(), p.Scene.Config.TTL) })
		p.During(lease.Done(), a.Hold/2)
	}
	if s.isExclusive(a) && lease.Valid() {
		storage.Write(version, lease.Token())
		p.Scene.Stats.Writes++
	}
	letGo()
	p.Call(func() { lease.Unlock(context.Background()) })
}

// whereabouts is in which group each name is, and since when, as far as the callers have looked.
type whereabouts struct {
	of     map[string]whereabout
	number int // of the newest map
}

type whereabout struct {
	group string // by the maps of all masters; empty: they do not agree, or it moves
	since time.Duration
}

// tellsWithin is after how long a client knows where a name is: it looks once a second.
const tellsWithin = 3 * time.Second

// update looks where all names are, and returns that of one.
func (w *whereabouts) update(t *promises.Scene, name string) whereabout {
	number := fleet.NewestMap(t.Masters).Number
	for _, n := range t.Config.LockNames() {
		if was, group := w.of[n], fleet.OwnerOf(t.Masters, n); was.group != group || number > w.number+1 {
			w.of[n] = whereabout{group, t.World.Now}
		}
	}
	w.number = number
	return w.of[name]
}

// undisturbed reports whether nothing but operators can keep a caller from a lock.
func undisturbed(p *promises.Caller) bool {
	return p.Scene.Config.Faults.Name == plan.Calm.Name && p.Client.Preemption.Every == 0
}
