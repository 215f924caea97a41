package simulate

import (
	"slices"
	"time"
)

// host is a machine of the simulated world: a client process or a master. All
// that happens to it are events tagged with it, so that a stopped host does
// nothing, and catches up when it goes on.
type host struct {
	world *world
	id    int
	name  string
	clock *Clock
	life  uint32 // counts crashes
	down  bool

	stops   int           // pauses and suspends that are on, which may overlap
	resumed time.Duration // when the last one ended
	backlog []event
	procs   []*Process
	workers []*Process // of the library's transport

	resting      []*thread // stopped in the middle of an event
	stoppedProcs int       // in the middle of their code
}

func newHost(w *world, id int, name string) *host {
	h := &host{world: w, id: id, name: name}
	h.clock = newClock(h)
	return h
}

func (h *host) stopped() bool { return h.stops > 0 }

// pause stops the host as SIGSTOP does, or a long garbage collection: its
// clocks go on.
func (h *host) pause() { h.stops++ }

// suspend stops the host as closing a laptop does: the wall clock goes on, the
// monotonic clock and with it every timer stands still.
func (h *host) suspend() {
	h.stops++
	h.clock.suspend()
}

// wake ends a suspend.
func (h *host) wake() {
	h.clock.wake()
	h.resume()
}

// resume ends a pause. What fell due meanwhile happens now, in its old order, or the
// timers first: those and the connections are different threads of a process.
func (h *host) resume() {
	if h.stops == 0 {
		return // it crashed in between
	}
	h.stops--
	if h.stops > 0 {
		return
	}
	h.resumed = h.world.now
	if h.world.toss() {
		slices.SortStableFunc(h.backlog, timersFirst)
	}
	for _, e := range h.backlog {
		if e.life == h.life {
			h.world.at(h.world.now, h, e.what)
		}
	}
	h.backlog = h.backlog[:0]
}

func timersFirst(a, b event) int { return a.rank() - b.rank() }

// rank is lower for timers than for what else happens.
func (e *event) rank() int {
	if _, ok := e.what.(*timer); ok {
		return 0
	}
	return 1
}

// crash ends everything that the host was doing. Its clock stays.
func (h *host) crash() {
	h.life++
	h.down = true
	h.stops = 0
	h.backlog = h.backlog[:0]
	resting := h.resting
	h.resting, h.stoppedProcs = nil, 0
	for _, t := range resting {
		t.kill()
	}
	procs := slices.Concat(h.procs, h.workers)
	h.procs, h.workers = nil, nil
	for _, p := range procs {
		p.kill()
	}
	h.clock.crash() // last: what unwinds may still set timers
}

// goOn lets the first of the processes go on that can. The list may have changed
// then.
func goOn(procs []*Process) bool {
	for _, p := range procs {
		if p.due() {
			p.resume()
			return true
		}
	}
	return false
}

// settle lets every process of the host go on that can, until none can.
func (h *host) settle() {
	for again := true; again; {
		again = goOn(h.workers) || goOn(h.procs)
	}
}
