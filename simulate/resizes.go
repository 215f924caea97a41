package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// resized is one Resize of a semaphore.
type resized struct {
	name   string
	to     int
	began  time.Duration
	over   time.Duration // when it returned; negative: it has not
	failed bool          // some masters may have been told, or will be
	lapses int           // of all masters, when it began
}

// resize does what an action says: it changes the number of permits.
func (t *trial) resize(p *Process, a Action) {
	name := a.names()[0]
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	defer cancel()
	r := &resized{name: name, to: a.Resize, began: t.world.now, over: -1, lapses: t.lapses()}
	t.check.resizes = append(t.check.resizes, r)
	known := p.client.permitsOf(name)
	s := p.client.api.Semaphore(name, known, optionsOf[redlock.SemaphoreOption](t.config, a)...)
	for _, permits := range []int{0, redlock.MaxPermits + 1} {
		if s.Resize(ctx, permits) == nil {
			p.Fail("%s has resized %q to %d permits", p.name, name, permits)
		}
	}
	calm, right := t.check.calm(p.client), t.check.everybodyHas(name, known)
	var said *replies
	if p.client.resizing == nil {
		said = &replies{masters: len(p.client.masters)}
		p.client.resizing = said
	}
	var err error
	p.call(func() { err = s.Resize(ctx, a.Resize) })
	t.note(p, err)
	r.over, r.failed = t.world.now, err != nil
	t.resizeEnds(p, r, said, err, calm && right)
	switch {
	case err == nil:
		p.client.sizes[name] = a.Resize
	case errors.Is(err, redlock.ErrPermits):
		t.learn(p, name)
	}
}

// resizeEnds looks at how a Resize ended. One that is done was confirmed by a quorum.
// One that began when nothing was wrong and every master had the number that its client
// knew is not refused, unless another came in between.
func (t *trial) resizeEnds(p *Process, r *resized, said *replies, err error, fits bool) {
	if said == nil {
		return
	}
	p.client.resizing = nil
	if err == nil && said.granted < quorum.Size(said.masters) {
		p.Fail("%s has resized %q, which %d of %d masters have confirmed", p.name, r.name, said.granted, said.masters)
	}
	if fits && errors.Is(err, redlock.ErrPermits) && t.check.calm(p.client) && !t.check.resizedBeside(r) {
		p.Fail("%s could not resize %q from the number that every master had, and nothing was wrong: %v", p.name, r.name, err)
	}
}

// everybodyHas reports whether every master has that number of permits.
func (k *checker) everybodyHas(name string, permits int) bool {
	for _, m := range k.trial.masters {
		if m.permits(name) != permits {
			return false
		}
	}
	return true
}

// resizedBeside reports whether another Resize of the same semaphore was under way at
// the same time, or may still arrive.
func (k *checker) resizedBeside(r *resized) bool {
	return slices.ContainsFunc(k.resizes, func(o *resized) bool {
		return o != r && o.name == r.name && (o.over < 0 || o.failed || o.over >= r.began)
	})
}

// learn finds out how many permits there are for a client that was told that it does
// not know, and reports whether a majority of the masters says so.
func (t *trial) learn(p *Process, name string) (agreed bool) {
	var h redlock.Holder
	p.call(func() { h, _ = p.client.api.Inspect(context.Background(), name) })
	if h.Permits > 0 {
		p.client.sizes[name] = h.Permits
	}
	return h.Permits > 0
}

// permitsOf returns how many permits of a semaphore a client knows of.
func (c *client) permitsOf(name string) int {
	if n := c.sizes[name]; n > 0 {
		return n
	}
	return c.config.permits
}

// takeSized takes a permit when all is well again, whatever number the masters have.
func (t *trial) takeSized(p *Process, a Action) {
	for name := a.names()[0]; ; {
		a.Permits = p.client.permitsOf(name)
		ctx, cancel := p.Clock().WithTimeout(context.Background(), t.config.TTL)
		h, err := t.lock(p, ctx, a)
		cancel()
		if err == nil {
			t.check.leave(h.claim)
			p.call(func() { h.Unlock(context.Background()) })
			return
		}
		if !t.learn(p, name) || !errors.Is(err, redlock.ErrPermits) {
			a.Resize, a.Patience = t.config.permits, t.config.TTL
			t.resize(p, a)
		}
		p.Sleep(context.Background(), p.client.dice.spread(time.Millisecond, t.config.TTL))
	}
}

// lapses counts what masters have forgotten.
func (t *trial) lapses() (n int) {
	for _, m := range t.masters {
		n += int(m.lapses)
	}
	return n
}

// fewer reports who was given permits although there are no more than are held, by a
// Resize that was complete before it asked.
func (k *checker) fewer(cl *claim) {
	if cl.permits == 0 || cl.adopted || !k.settledOn(cl) {
		return
	}
	out := 0
	for _, other := range k.claims {
		if other.names[0] == cl.names[0] && other.usesPermits() {
			out += other.permits
		}
	}
	if out > cl.limit {
		k.report(Violation{
			Kind: Overlap,
			What: fmt.Sprintf("%s was given permits when %d of %q were held, and there had been a Resize to %d",
				cl.client.host.name, out-cl.permits, cl.names[0], cl.limit),
			Clients: []int{cl.client.index},
		})
	}
}

// settledOn reports whether a claim knows the number by the last Resize, which was
// complete before, as all others were when that began, and which no master forgot.
func (k *checker) settledOn(cl *claim) bool {
	var last *resized
	for _, r := range k.resizes {
		if r.name != cl.names[0] {
			continue
		}
		if last != nil && (last.over < 0 || last.over > r.began || last.failed) {
			return false
		}
		last = r
	}
	return last != nil && !last.failed && last.over >= 0 && last.over < cl.began &&
		last.to == cl.limit && last.lapses == k.trial.lapses()
}

// know returns the masters that have that number of permits, or none.
func (k *checker) know(name string, permits int) (known quorum.Set) {
	for i, m := range k.trial.masters {
		if size := m.permits(name); size == 0 || size == permits {
			known |= quorum.Only(i)
		}
	}
	return known
}

// permits returns how many permits a master believes that a semaphore has; zero if nobody
// has told it.
func (m *master) permits(name string) int {
	size, _ := m.keys.Size(masters.PermitKeys{Limit: "redlock:permits:" + name})
	return size
}
