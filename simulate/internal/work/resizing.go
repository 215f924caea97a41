package work

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

// resize does what an action says: it changes the number of permits.
func (t *Work) resize(p *promises.Caller, a plan.Action) {
	name := a.LockNames()[0]
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	defer cancel()
	r := &promises.Resized{Name: name, To: a.Resize, Began: t.World.Now, Over: -1, Lapses: t.Lapses()}
	t.Check.Resizes = append(t.Check.Resizes, r)
	known := p.Client.PermitsOf(name)
	s := p.Client.API.Semaphore(name, known, optionsOf[redlock.SemaphoreOption](t.Config, a)...)
	for _, permits := range []int{0, wire.MaxPermits + 1} {
		if s.Resize(ctx, permits) == nil {
			p.Fail("%s has resized %q to %d permits", p.Name(), name, permits)
		}
	}
	calm, right := t.Check.Calm(p.Client), t.Check.EverybodyHas(name, known)
	var said *promises.Replies
	if p.Client.Resizing == nil {
		said = &promises.Replies{Masters: len(p.Client.Masters)}
		p.Client.Resizing = said
	}
	var err error
	p.Call(func() { err = s.Resize(ctx, a.Resize) })
	t.note(p, err)
	r.Over, r.Failed = t.World.Now, err != nil
	t.ResizeEnds(p, r, said, err, calm && right)
	switch {
	case err == nil:
		p.Client.Sizes[name] = a.Resize
	case errors.Is(err, redlock.ErrPermits):
		t.learn(p, name)
	}
}

// learn finds out how many permits there are for a client that was told that it does
// not know, and reports whether a majority of the masters says so.
func (t *Work) learn(p *promises.Caller, name string) (agreed bool) {
	var h redlock.Holder
	p.Call(func() { h, _ = p.Client.API.Inspect(context.Background(), name) })
	if h.Permits > 0 {
		p.Client.Sizes[name] = h.Permits
	}
	return h.Permits > 0
}

// TakeSized takes a permit when all is well again, whatever number the masters have.
func (t *Work) TakeSized(p *promises.Caller, a plan.Action) {
	for name := a.LockNames()[0]; ; {
		a.Permits = p.Client.PermitsOf(name)
		ctx, cancel := p.Clock().WithTimeout(context.Background(), t.Config.TTL)
		h, err := t.lock(p, ctx, a)
		cancel()
		if err == nil {
			t.Check.Leave(h.claim)
			p.Call(func() { h.Unlock(context.Background()) })
			return
		}
		if !t.learn(p, name) || !errors.Is(err, redlock.ErrPermits) {
			a.Resize, a.Patience = t.Config.Permits, t.Config.TTL
			t.resize(p, a)
		}
		p.Sleep(context.Background(), p.Client.Dice.Spread(time.Millisecond, t.Config.TTL))
	}
}
