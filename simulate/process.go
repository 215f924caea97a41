package simulate

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Process is code that runs on a simulated client. It is ordinary blocking code: the
// world stops it wherever it waits, and continues it when what it waits for has
// happened. Only its own code may call the methods of a Process.
type Process struct {
	trial  *trial
	client *client
	caller int // the place of its actions in the schedule
	host   *host
	name   string
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool

	ready   <-chan struct{} // what it waits for; nil with a nil ctx: nothing
	ctx     context.Context
	err     error // what the wait returns
	alive   bool
	dead    bool
	calling bool // it is in a call of the library
	rested  bool // it was stopped in the middle since it last waited
	uneven  int  // Clock.uneven when it last waited
	own     bool // it waits of its own accord, and not inside the library
}

// start makes a process that runs body on h, beginning with the next event.
func (h *host) start(name string, body func(p *Process)) *Process {
	p := h.process(name, body)
	h.procs = append(h.procs, p)
	return p
}

// work runs f, code of the library's transport, beginning with the next event.
func (h *host) work(f func()) {
	h.workers = append(h.workers, h.process("the transport of "+h.name, func(p *Process) { p.call(f) }))
}

func (h *host) process(name string, body func(p *Process)) *Process {
	p := &Process{host: h, name: name, alive: true}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errKilled {
				panic(h.world.blame(r, name))
			}
		}()
		p.yield = yield
		body(p)
	})
	h.world.procs = append(h.world.procs, p)
	h.world.at(h.world.now, h, action(p.resume))
	return p
}

// killed unwinds the code of a process whose host crashed.
type killed struct{}

var errKilled = &killed{}

// wait is the seam.Seams.Wait of every client, the only place where simulated code
// blocks.
func (w *world) wait(ctx context.Context, ready <-chan struct{}) error {
	p := w.running
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
	p.rested, p.uneven = false, p.host.clock.uneven
	err := p.err
	p.ctx, p.ready, p.err = nil, nil, nil
	return err
}

// due reports whether the process can go on, and takes what it waited for. If that is
// there and the context has ended as well, dice decide between them, as in a select.
func (p *Process) due() bool {
	if p.ctx == nil {
		return false
	}
	ended := p.ctx.Done() != nil && p.ctx.Err() != nil
	if ended && p.host.world.toss() {
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

// resume runs the process until it waits again or ends.
func (p *Process) resume() {
	if !p.alive {
		return
	}
	w := p.host.world
	outer := w.running
	w.running = p
	_, more := p.next()
	w.running = outer
	if !more {
		p.gone()
	}
}

// kill ends the process where it stands. Its deferred functions run, but reach nobody.
func (p *Process) kill() {
	if !p.alive {
		return
	}
	w := p.host.world
	outer := w.running
	w.running = p
	p.stop()
	w.running = outer
	p.gone()
}

func (p *Process) gone() {
	p.alive = false
	p.ctx = nil
	p.host.procs = leaving(p.host.procs, p)
	p.host.workers = leaving(p.host.workers, p)
}

// leaving returns procs without p. It does not change procs.
func leaving(procs []*Process, p *Process) []*Process {
	for i, q := range procs {
		if q == p {
			return append(procs[:i:i], procs[i+1:]...)
		}
	}
	return procs
}

// Name returns the name of the process, as the timeline shows it.
func (p *Process) Name() string { return p.name }

// Clock returns the clock of the client that the process runs on.
func (p *Process) Clock() *Clock { return p.host.clock }

// Wait waits until ready delivers or is closed, and returns nil, or until ctx ends, and
// returns its error.
func (p *Process) Wait(ctx context.Context, ready <-chan struct{}) error {
	p.own = true
	err := p.host.world.wait(ctx, ready)
	p.own = false
	if p.client != nil {
		p.client.gotOn = p.host.world.now
	}
	return err
}

// Sleep waits for d on the client's clock and returns nil, or until ctx ends, and
// returns its error.
func (p *Process) Sleep(ctx context.Context, d time.Duration) error {
	ready := make(chan struct{})
	t := p.host.clock.after(d, func() { close(ready) })
	err := p.Wait(ctx, ready)
	t.stop()
	return err
}

// during waits for d, or until done is closed, and reports whether it was.
func (p *Process) during(done <-chan struct{}, d time.Duration) bool {
	return p.Sleep(until{context.Background(), done}, d) != nil
}

// until is a context that ends with a channel.
type until struct {
	context.Context
	done <-chan struct{}
}

func (u until) Done() <-chan struct{} { return u.done }

func (u until) Err() error {
	select {
	case <-u.done:
		return context.Canceled
	default:
		return nil
	}
}

// Client returns the number of the client that the process runs on, from 0.
func (p *Process) Client() int { return p.client.index }

// Over reports whether the faults of the schedule are over. The workload should end
// then.
func (p *Process) Over() bool { return p.trial.healed }

// Storage returns the resource that the lock protects.
func (p *Process) Storage() *Storage { return p.trial.storage(lockName) }

// Holding tells the checks that the client relies on a lease from now on, until it calls
// letGo, or crashes.
func (p *Process) Holding(l *redlock.Lease) (letGo func()) {
	p.trial.stats.Acquisitions++
	s := stake{names: strings.Split(l.Name(), ","), renews: p.trial.config.Lock == Election}
	if l.Token() != 0 {
		s.above = map[string]uint64{} // it is not known when the call began
	}
	cl := p.trial.check.grant(p.client, l, s)
	cl.asked = true // the workload may call anything
	return func() { p.trial.check.leave(cl) }
}

// Fail reports a violation of the kind Custom: a promise that the workload itself checks
// is broken.
func (p *Process) Fail(format string, args ...any) {
	p.trial.check.report(Violation{Kind: Custom, What: fmt.Sprintf(format, args...), Clients: []int{p.client.index}})
}
