package simulate

import (
	"iter"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// thread is a coroutine that runs events, one after another. Where the code of a
// client is stopped in the middle of one, its thread rests and another goes on
// with the events, so that callbacks and callers interleave.
type thread struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	killed bool
}

// run lets events happen until the given instant, or until stop reports true.
func (w *world) run(until time.Duration, stop func() bool) {
	w.until, w.stop = until, stop
	for w.woken != nil || w.due() {
		t := w.woken
		if t == nil {
			t = w.spare()
		}
		w.woken, w.thread = nil, t
		t.next()
	}
	w.thread = nil
	for _, t := range w.spares {
		t.kill()
	}
	w.spares = nil
	w.threads = slices.DeleteFunc(w.threads, func(t *thread) bool { return t.killed })
	if !stop() {
		w.now = max(w.now, until)
	}
}

// due reports whether there is an event to be run.
func (w *world) due() bool {
	return len(w.events) > 0 && w.events[0].at <= w.until && !w.stop()
}

// spare returns a thread that does nothing.
func (w *world) spare() *thread {
	if n := len(w.spares); n > 0 {
		t := w.spares[n-1]
		w.spares = w.spares[:n-1]
		return t
	}
	t := &thread{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && !t.killed {
				panic(w.blame(r, w.what()))
			}
		}()
		t.yield = yield
		for {
			for w.woken == nil && w.due() {
				w.step()
			}
			w.spares = append(w.spares, t)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	w.threads = append(w.threads, t)
	return t
}

// kill ends a thread that rests, or is spare.
func (t *thread) kill() {
	t.killed = true
	t.stop()
}

// rest stops the running thread for d of true time, in the middle of an event of
// h. The other events of h happen meanwhile.
func (h *host) rest(d time.Duration) {
	w := h.world
	t := w.thread
	h.resting = append(h.resting, t)
	timing := w.timing
	h.yields(d, action(func() { w.woken = t }))
	w.active, w.timing = nil, false // or the checks would be stopped as its code is
	if !t.yield(struct{}{}) {
		panic(errKilled)
	}
	h.resting = slices.DeleteFunc(h.resting, func(o *thread) bool { return o == t })
	w.active, w.timing = h, timing
	h.resumed = w.now
}

// yields has the others of the host go on now, and the one who rests after d.
func (h *host) yields(d time.Duration, resume action) {
	w := h.world
	w.at(w.now, h, action(func() {})) // whoever was woken before can run
	w.at(w.now+d, h, resume)
}

// rest stops the process for d of true time.
func (p *Process) rest(d time.Duration) {
	h := p.host
	h.stoppedProcs++
	h.yields(d, p.resume)
	if !p.yield(struct{}{}) {
		p.dead = true
		panic(errKilled)
	}
	h.stoppedProcs--
	h.resumed = h.world.now
	p.rested = true
}

// rests reports whether any code of the host is stopped in the middle.
func (h *host) rests() bool { return len(h.resting) > 0 || h.stoppedProcs > 0 }

// hangs reports whether the host stands still, or some of its code does.
func (h *host) hangs() bool { return h.stopped() || h.rests() }

// preemption is how often the code of a client is stopped in the middle, and for
// how long.
type preemption struct {
	every   int           // steps between two stops, about; zero: never
	where   Stops         // only there
	short   time.Duration // most are up to that long
	long    time.Duration // some are, as long as not all is well again
	longOdd int           // how many of a thousand
	stalls  int           // at how many of a thousand stops the whole process stands still, too
}

// Stops says where the code of the clients is stopped in the middle, in a schedule that
// stops it at all. A race of a timer with a reply takes a stop in just that timer, which
// stops that may come anywhere hit too seldom.
type Stops string

// Where code may be stopped.
const (
	Everywhere Stops = ""
	InTimers   Stops = "timers"
	InReplies  Stops = "replies"
	InCalls    Stops = "calls"
	InRenewals Stops = "renewals" // where replies to renewals are read
	InAsks     Stops = "asks"     // where those to asks of waiters are
)

// isAt reports whether the code of the client is there now.
func (c *client) isAt(where Stops) bool {
	called, timing := c.world.running != nil, c.world.timing
	switch where {
	case InCalls:
		return called
	case InTimers:
		return !called && timing
	case InReplies:
		return !called && !timing
	case InRenewals:
		return !called && c.handling == wire.OpExtend
	case InAsks:
		return !called && c.handling == wire.OpAsk
	}
	return true
}

// step may stop what the client is doing. It is called wherever its code asks a
// master, locks a mutex or has unlocked one.
func (c *client) step() {
	w := c.world
	if c.preemption.every == 0 || c.host.down {
		return
	}
	p := w.running
	if p != nil && !p.calling || p == nil && w.active != c.host {
		return
	}
	if !c.isAt(c.preemption.where) {
		return
	}
	if c.untilStop--; c.untilStop > 0 {
		return
	}
	c.untilStop = 1 + c.stopDice.below(2*c.preemption.every)
	d := c.stopDice.spread(5*time.Microsecond, c.preemption.short)
	if c.stopDice.chance(c.preemption.longOdd) && !c.check.trial.healed {
		d = c.stopDice.spread(c.preemption.short, c.preemption.long)
	}
	c.stats.stops++
	c.stall()
	if d > c.config.nodeTimeout/2 {
		w.rough = max(w.rough, w.now+d) // what it has asked may come to nothing
	}
	if p != nil {
		p.rest(d)
		return
	}
	c.host.rest(d)
}

// stall has the whole process stand still in some schedules, with a thread stopped in the
// middle. That goes on first then, and what it has read of the clock is old.
func (c *client) stall() {
	if t := c.check.trial; c.preemption.stalls > 0 && !t.healed && c.stopDice.chance(c.preemption.stalls) {
		t.strike(&Fault{Kind: ClientPause, At: t.world.now, For: c.stopDice.spread(c.config.TTL/4, 2*c.config.TTL), Client: c.index, Node: -1})
	}
}

// call runs code of the library, which may be stopped in the middle.
func (p *Process) call(f func()) {
	p.calling = true
	f()
	p.calling = false
}

// uneven is what the client's clock had gone through when a lease began that the
// process which runs has now: that was after it last waited.
func (c *client) uneven() int {
	if c.preempted() {
		return c.host.world.running.uneven
	}
	return c.host.clock.uneven
}

// preempted reports whether the process that runs was stopped since it last
// waited: what it saw then may not be so any more.
func (c *client) preempted() bool {
	p := c.host.world.running
	return p != nil && p.rested
}
