package simulate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// A process that crashed while it held a lock, and had written the value down, takes
// the lease up again when it is back.

// estate is what a caller held, as it was written down.
type estate struct {
	action  Action
	permits int // fewer than the action says, if there were no more
	limit   int // how many there were
	value   string
	token   uint64
}

// holdersCrash lets some callers crash while they hold a lock, where leases are adopted:
// those that crash whenever it may be seldom hold one, and come back in time for it less
// often still.
func (s *Schedule) holdersCrash(dice *stream) {
	cfg := s.config
	if !cfg.adopts || cfg.usual || !slices.Contains(cfg.Faults.Kinds, ClientCrash) {
		return
	}
	for _, list := range s.Actions {
		for i := range list {
			if a := &list[i]; dice.chance(50) {
				a.Crash, a.Down = dice.between(1, a.Hold+1), dice.spread(cfg.TTL/100, cfg.TTL/2)
			}
		}
	}
}

// crashes makes the client of a process that has just got a lock crash, and start again.
func (t *trial) crashes(p *Process, a Action) {
	if a.Crash == 0 {
		return
	}
	c, w, life := p.client, t.world, p.host.life
	w.at(w.now+a.Crash, nil, action(func() {
		if t.healed || c.host.down || c.host.life != life {
			return
		}
		t.strike(&Fault{Kind: ClientCrash, At: w.now, For: a.Down, Client: c.index})
		t.forgets(a.Ordeal)
	}))
}

// writeDown notes a lease until its caller gives it back, or makes something else of it:
// what it then asked for may still arrive after its end.
func (t *trial) writeDown(p *Process, h *grip, a Action) {
	if lease, ok := h.holding.(*redlock.Lease); ok && t.config.adopts {
		t.estates[p.caller] = estate{a, h.claim.permits, h.claim.limit, lease.Value(), lease.Token()}
	}
}

func (t *trial) strikeOut(p *Process) { delete(t.estates, p.caller) }

// adopt goes on with what the caller held when it crashed.
func (t *trial) adopt(p *Process) {
	e, ok := t.estates[p.caller]
	t.strikeOut(p)
	if !ok || t.healed {
		return
	}
	t.adoptWrongly(p, e)
	permits := p.client.permitsOf(e.action.names()[0])
	take := t.config.adopter(p.client.api, e.action, permits)
	s := t.stake(p, e.action)
	s.adopted, s.permits = true, e.permits
	s.limit = max(s.limit, e.limit) // what is held stays with its holder after a Resize to fewer
	if s.line != nil {
		t.check.over(s.line)
		s.line = nil // it does not queue
	}
	var lease *redlock.Lease
	var err error
	t.hangs(e.action.Ordeal)
	calm, before := t.check.calm(p.client), t.check.withPermits(e)
	order, lapses := t.check.orderOf(e, permits), t.lapses()
	p.call(func() { lease, err = take(context.Background(), e.value) })
	t.check.adopted(p, e, err, calm && before == 0, min(before, t.check.withPermits(e)))
	if !t.config.Lock.IsFenced() || !errors.Is(err, redlock.ErrNoQuorum) { // or a majority granted, and none knows the token
		t.note(p, err)
	}
	if err != nil {
		return
	}
	t.stats.adopted++
	if !t.config.Lock.IsSemaphore() {
		s.above = nil // it has its token still
		if lease.Token() != e.token {
			p.Fail("%s had the token %d, and has %d since it adopted its lease", p.name, e.token, lease.Token())
		}
	}
	h := &grip{lease, t.check.grant(p.client, lease, s)}
	if t.lapses() == lapses {
		h.claim.order = min(order, t.check.orderOf(e, permits))
	}
	t.use(p, h, Action{
		Hold: e.action.Hold / 2, Renew: e.action.Renew, TTL: e.action.TTL,
		Lock: e.action.Lock, Names: e.action.Names, Read: e.action.Read, Permits: e.action.Permits,
	})
}

// withPermits returns how many masters store the permits of an estate.
func (k *checker) withPermits(e estate) (n int) {
	if !k.trial.config.Lock.IsSemaphore() {
		return 0
	}
	waiter, _ := masters.SplitValue(e.value)
	name := e.action.names()[0]
	for _, m := range k.trial.masters {
		list, value, has := m.keys.SlotsOf(masters.PermitKeys{Held: "redlock:held:" + name}, waiter)
		first, _, _ := strings.Cut(list, ",")
		if until, there := m.keys.Score("redlock:slots:"+name, first); has && value == e.value && there && until > m.keys.Millis() && !m.host.down {
			n++
		}
	}
	return n
}

// orderOf returns by which Resize there are so many permits, as far as any quorum of
// masters knows: who asks one learns of that Resize, or of a later one.
func (k *checker) orderOf(e estate, permits int) int64 {
	if !k.trial.config.Lock.IsSemaphore() {
		return 0
	}
	var orders []int64
	for _, m := range k.trial.masters {
		if total, order := m.keys.Size(masters.PermitKeys{Limit: "redlock:permits:" + e.action.names()[0]}); total == permits {
			orders = append(orders, order)
		}
	}
	need := quorum.Size(len(k.trial.masters))
	if len(orders) < need {
		return 0
	}
	slices.Sort(orders)
	return orders[need-1]
}

// adopted looks at how the adoption of permits failed: who has lost them is told so, and
// nobody else. gone says that no master had them and all could be asked; so many kept
// them all the time.
func (k *checker) adopted(p *Process, e estate, err error, gone bool, kept int) {
	if !k.trial.config.Lock.IsSemaphore() || p.client.closing || p.host.rests() {
		return
	}
	switch size := quorum.Size(len(p.client.masters)); {
	case gone && k.calm(p.client) && errors.Is(err, redlock.ErrNoQuorum):
		p.Fail("%s could not adopt permits of %q that no master has, and is told that there is no quorum: %v", p.name, e.action.names()[0], err)
	case kept >= size && errors.Is(err, redlock.ErrNotHeld):
		p.Fail("%s was told that permits of %q are lost, which %d masters keep: %v", p.name, e.action.names()[0], kept, err)
	}
}

// adoptInVain tries to take up a lease that was unlocked, where nothing is wrong.
func (t *trial) adoptInVain(p *Process, h *grip, a Action) {
	lease, ok := h.holding.(*redlock.Lease)
	if !ok || !t.config.adopts || lease.Holds() > 0 || !hasEnded(h) || !t.check.calm(p.client) || p.client.preemption.every > 0 {
		return
	}
	take := t.config.adopter(p.client.api, a, p.client.permitsOf(a.names()[0]))
	var err error
	delete(p.client.unlocked, lease.Value()) // it is asked for again
	p.call(func() { _, err = take(context.Background(), lease.Value()) })
	if p.client.closing || !t.check.calm(p.client) || errors.Is(err, redlock.ErrPermits) {
		return
	}
	if !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrTaken) {
		p.Fail("%s has unlocked %q, tries to adopt the lease, and is told: %v", p.name, a.names()[0], err)
	}
}

// beside reports whether other code of the client runs beside a process.
func (c *client) beside(p *Process) bool { return len(c.host.procs) > 1 || c.leases > 0 }

// adoptWrongly tries to adopt a reader's lease as a writer's, and a permit with a handle
// that says another number of permits than there are.
func (t *trial) adoptWrongly(p *Process, e estate) {
	name := e.action.names()[0]
	var take func(context.Context, string) (*redlock.Lease, error)
	switch cfg := t.config; {
	case cfg.Lock == ReadWriteLock && e.action.Read:
		take = p.client.api.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, e.action)...).Adopt
	case cfg.Lock.IsSemaphore() && !cfg.resizes:
		take = p.client.api.Semaphore(name, cfg.permits+1, optionsOf[redlock.SemaphoreOption](cfg, e.action)...).Adopt
	default:
		return
	}
	var err error
	asked := p.client.asked
	p.call(func() { _, err = take(context.Background(), e.value) })
	if t.config.Lock == ReadWriteLock && p.client.asked != asked && p.client.preemption.every == 0 && !p.client.beside(p) {
		p.Fail("%s has asked its masters to adopt a reader's lease of %q as a writer's", p.name, name)
	}
	if err == nil {
		p.Fail("%s has adopted a lease of %q with a handle of another kind", p.name, name)
	}
}

// adopter returns how a lease of an action is adopted.
func (cfg *Config) adopter(c *redlock.Client, a Action, permits int) func(context.Context, string) (*redlock.Lease, error) {
	name := a.names()[0]
	switch {
	case cfg.Lock == ReadWriteLock && a.Read:
		return c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...).RAdopt
	case cfg.Lock == ReadWriteLock:
		return c.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, a)...).Adopt
	case cfg.Lock.IsSemaphore():
		return c.Semaphore(name, permits, optionsOf[redlock.SemaphoreOption](cfg, a)...).Adopt
	}
	return cfg.mutex(c, a).Adopt
}
