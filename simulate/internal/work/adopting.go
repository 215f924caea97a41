package work

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// A process that crashed while it held a lock, and had written the value down, takes
// the lease up again when it is back.

// crashes makes the client of a process that has just got a lock crash, and start again.
func (t *Work) crashes(p *promises.Caller, a plan.Action) {
	if a.Crash == 0 {
		return
	}
	c, w, life := p.Client, t.World, p.Host.Life
	w.At(w.Now+a.Crash, nil, world.Action(func() {
		if t.Healed || c.Host.Down || c.Host.Life != life {
			return
		}
		t.Strike(&plan.Fault{Kind: plan.ClientCrash, At: w.Now, For: a.Down, Client: c.Index})
		t.forgets(a.Ordeal)
	}))
}

// writeDown notes a lease until its caller gives it back or converts it. The commands of such a
// call may still arrive after its end.
func (t *Work) writeDown(p *promises.Caller, h *grip, a plan.Action) {
	if lease, ok := h.Holding.(*redlock.Lease); ok && t.Config.Adopts {
		t.estates[p.Number] = promises.Estate{Action: a, Permits: h.claim.Permits, Limit: h.claim.Limit, Value: lease.Value(), Token: lease.Token()}
	}
}

func (t *Work) strikeOut(p *promises.Caller) { delete(t.estates, p.Number) }

// adopt goes on with what the caller held when it crashed.
func (t *Work) adopt(p *promises.Caller) {
	e, ok := t.estates[p.Number]
	t.strikeOut(p)
	if !ok || t.Healed {
		return
	}
	d := t.deadline(p, &e.Action)
	t.adoptWrongly(p, e)
	permits := p.Client.PermitsOf(e.Action.LockNames()[0])
	take := adopterOf(t.Config, p.Client.API, e.Action, permits)
	s := t.Stake(p, e.Action)
	s.Adopted, s.Permits = true, e.Permits
	s.Limit = max(s.Limit, e.Limit) // holders keep their permits after a Resize to fewer
	if s.Line != nil {
		t.Check.Over(s.Line)
		s.Line = nil // it does not queue
	}
	var lease *redlock.Lease
	var err error
	t.hangs(e.Action.Ordeal)
	calm, before := t.Check.Calm(p.Client), t.Check.WithPermits(e)
	order, lapses := t.Check.OrderOf(e, permits), t.Lapses()
	p.Call(func() { lease, err = take(context.Background(), e.Value) })
	t.Check.Adopted(p, e, err, calm && before == 0, min(before, t.Check.WithPermits(e)))
	if !t.Config.Lock.IsFenced() || !errors.Is(err, redlock.ErrNoQuorum) { // or a majority granted, and none knows the token
		t.note(p, err)
	}
	if err != nil {
		return
	}
	t.Stats.Adopted++
	if !t.Config.Lock.IsSemaphore() {
		s.Above = nil // it has its token still
		if lease.Token() != e.Token {
			p.Fail("%s had the token %d, and has %d since it adopted its lease", p.Name(), e.Token, lease.Token())
		}
	}
	h := &grip{Holding: lease, claim: t.Check.Grant(p.Client, lease, s)}
	h.until(d)
	if t.Lapses() == lapses {
		h.claim.Order = min(order, t.Check.OrderOf(e, permits))
	}
	t.use(p, h, plan.Action{
		Hold: e.Action.Hold / 2, Renew: e.Action.Renew, TTL: e.Action.TTL,
		Lock: e.Action.Lock, Names: e.Action.Names, AtLeast: e.Action.AtLeast, Grace: e.Action.Grace, Overrun: e.Action.Overrun, Read: e.Action.Read, Permits: e.Action.Permits,
	})
}

// adoptInVain tries to take up a lease that was unlocked, where nothing is wrong.
func (t *Work) adoptInVain(p *promises.Caller, h *grip, a plan.Action) {
	lease, ok := h.Holding.(*redlock.Lease)
	if !ok || !t.Config.Adopts || seam.HoldsOf(lease) > 0 || !promises.HasEnded(h) || !t.Check.Calm(p.Client) || p.Client.Preemption.Every > 0 {
		return
	}
	take := adopterOf(t.Config, p.Client.API, a, p.Client.PermitsOf(a.LockNames()[0]))
	var err error
	delete(p.Client.Unlocked, lease.Value()) // it is asked for again
	p.Call(func() { _, err = take(context.Background(), lease.Value()) })
	if p.Client.Closing || !t.Check.Calm(p.Client) || errors.Is(err, redlock.ErrPermits) {
		return
	}
	if !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrTaken) {
		p.Fail("%s has unlocked %q, tries to adopt the lease, and is told: %v", p.Name(), a.LockNames()[0], err)
	}
}

// adoptWrongly tries to adopt a reader's lease as a writer's, and a permit with a handle
// that says another number of permits than there are.
func (t *Work) adoptWrongly(p *promises.Caller, e promises.Estate) {
	name := e.Action.LockNames()[0]
	var take func(context.Context, string) (*redlock.Lease, error)
	switch cfg := t.Config; {
	case cfg.Lock == plan.ReadWriteLock && e.Action.Read:
		take = p.Client.API.RWMutex(name, optionsOf[redlock.RWMutexOption](cfg, e.Action)...).Adopt
	case cfg.Lock.IsSemaphore() && !cfg.Resizes:
		take = p.Client.API.Semaphore(name, cfg.Permits+1, optionsOf[redlock.SemaphoreOption](cfg, e.Action)...).Adopt
	default:
		return
	}
	var err error
	asked := p.Client.Asked
	p.Call(func() { _, err = take(context.Background(), e.Value) })
	if t.Config.Lock == plan.ReadWriteLock && p.Client.Asked != asked && p.Client.Preemption.Every == 0 && !p.Client.Beside(p) {
		p.Fail("%s has asked its masters to adopt a reader's lease of %q as a writer's", p.Name(), name)
	}
	if err == nil {
		p.Fail("%s has adopted a lease of %q with a handle of another kind", p.Name(), name)
	}
}
