package world

import (
	"context"
	"iter"
	"time"
)

// Routine is code that runs on a host. It is ordinary blocking code: the world stops it
// wherever it waits, and continues it when the awaited event has happened. Only its own code
// may call its methods.
type Routine struct {
	Host  *Host
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	ready   <-chan struct{} // the awaited channel; nil with a nil ctx: no wait
	ctx     context.Context
	err     error // what the wait returns
	alive   bool
	dead    bool
	Calling bool // it is in a call of the library
	Rested  bool // it was stopped in the middle since it last waited
	Uneven  int  // Clock.uneven when it last waited
	own     bool // it waits of its own accord, and not inside the library
}

// Start makes a process that runs body on h, beginning with the next event.
func (h *Host) Start(name string, body func(p *Routine)) *Routine {
	p := h.process(name, body)
	h.Procs = append(h.Procs, p)
	return p
}

// Work runs f, code of the library's transport, beginning with the next event.
func (h *Host) Work(f func()) {
	h.workers = append(h.workers, h.process("the transport of "+h.Name, func(p *Routine) { p.Call(f) }))
}

func (h *Host) process(name string, body func(p *Routine)) *Routine {
	p := &Routine{Host: h, name: name, alive: true}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errKilled {
				panic(h.World.blame(r, name))
			}
		}()
		p.yield = yield
		body(p)
	})
	h.World.procs = append(h.World.procs, p)
	h.World.At(h.World.Now, h, Action(p.resume))
	return p
}

// killed unwinds the code of a process whose host crashed.
type killed struct{}

var errKilled = &killed{}

// Wait is the seam.Seams.Wait of every client, the only place where simulated code
// blocks.
func (w *World) Wait(ctx context.Context, ready <-chan struct{}) error {
	p := w.Running
	if p == nil {
		panic("simulate: waiting outside of a Process: only the code of a Process may call blocking functions")
	}
	if p.dead {
		panic(errKilled)
	}
	p.ctx, p.ready = ctx, ready
	if !p.due() {
		if !p.yield(struct{}{}) {
			p.dead = true
			panic(errKilled)
		}
	}
	p.Rested, p.Uneven = false, p.Host.Clock.Uneven
	err := p.err
	p.ctx, p.ready, p.err = nil, nil, nil
	return err
}

// due reports whether the process can go on, and receives from the awaited channel. If the
// channel is ready and the context has ended as well, dice decide between them, as in a select.
func (p *Routine) due() bool {
	if p.ctx == nil {
		return false
	}
	ended := p.ctx.Done() != nil && p.ctx.Err() != nil
	if ended && p.Host.World.toss() {
		p.err = p.ctx.Err()
		return true
	}
	select {
	case <-p.ready:
		return true
	default:
	}
	if ended {
		p.err = p.ctx.Err()
	}
	return ended
}

// Resume runs the process until it waits again or ends.
func (p *Routine) resume() {
	if !p.alive {
		return
	}
	w := p.Host.World
	outer := w.Running
	w.Running = p
	_, more := p.next()
	w.Running = outer
	if !more {
		p.gone()
	}
}

// kill ends the process where it stands. Its deferred functions run, but reach no other host.
func (p *Routine) kill() {
	if !p.alive {
		return
	}
	w := p.Host.World
	outer := w.Running
	w.Running = p
	p.stop()
	w.Running = outer
	p.gone()
}

func (p *Routine) gone() {
	p.alive = false
	p.ctx = nil
	p.Host.Procs = leaving(p.Host.Procs, p)
	p.Host.workers = leaving(p.Host.workers, p)
}

// leaving returns procs without p. It does not change procs.
func leaving(procs []*Routine, p *Routine) []*Routine {
	for i, q := range procs {
		if q == p {
			return append(procs[:i:i], procs[i+1:]...)
		}
	}
	return procs
}

// Call runs code of the library, which may be stopped in the middle.
func (p *Routine) Call(f func()) {
	p.Calling = true
	f()
	p.Calling = false
}

// Rest stops the process for d of true time.
func (p *Routine) Rest(d time.Duration) {
	h := p.Host
	h.stoppedProcs++
	h.yields(d, p.resume)
	if !p.yield(struct{}{}) {
		p.dead = true
		panic(errKilled)
	}
	h.stoppedProcs--
	h.Resumed = h.World.Now
	p.Rested = true
}

// Name returns the name of the process, as the timeline shows it.
func (p *Routine) Name() string { return p.name }

// Clock returns the clock of the client that the process runs on.
func (p *Routine) Clock() *Clock { return p.Host.Clock }

// Wait waits until ready delivers or is closed, and returns nil, or until ctx ends, and
// returns its error.
func (p *Routine) Wait(ctx context.Context, ready <-chan struct{}) error {
	p.own = true
	err := p.Host.World.Wait(ctx, ready)
	p.own = false
	return err
}

// Sleep waits for d on the client's clock and returns nil, or until ctx ends, and
// returns its error.
func (p *Routine) Sleep(ctx context.Context, d time.Duration) error {
	ready := make(chan struct{})
	t := p.Host.Clock.Later(d, func() { close(ready) })
	err := p.Wait(ctx, ready)
	t.stop()
	return err
}

// Inside reports whether the routine waits inside the library.
func (p *Routine) Inside() bool { return p.ctx != nil && !p.own }
