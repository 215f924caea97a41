package world

import (
	"slices"
	"time"
)

// Host is a machine of the simulated world: a client process or a master. All
// that happens to it are events tagged with it, so that a stopped host does
// nothing, and catches up when it goes on.
type Host struct {
	World *World
	Id    int
	Name  string
	Clock *Clock
	Life  uint32 // counts crashes
	Down  bool

	stops   int           // pauses and suspends that are on, which may overlap
	Resumed time.Duration // when the last one ended
	backlog []event
	Procs   []*Routine
	workers []*Routine // of the library's transport

	resting      []*thread // stopped in the middle of an event
	stoppedProcs int       // in the middle of their code
}

func NewHost(w *World, id int, name string) *Host {
	h := &Host{World: w, Id: id, Name: name}
	h.Clock = newClock(h)
	return h
}

func (h *Host) Stopped() bool { return h.stops > 0 }

// Pause stops the host as SIGSTOP does, or a long garbage collection: its
// clocks go on.
func (h *Host) Pause() { h.stops++ }

// Suspend stops the host as closing a laptop does: the wall clock goes on, the
// monotonic clock and with it every timer stands still.
func (h *Host) Suspend() {
	h.stops++
	h.Clock.suspend()
}

// Wake ends a suspend.
func (h *Host) Wake() {
	h.Clock.wake()
	h.Resume()
}

// Resume ends a pause. What fell due meanwhile happens now, in its old order, or the
// timers first: those and the connections are different threads of a process.
func (h *Host) Resume() {
	if h.stops == 0 {
		return // it crashed in between
	}
	h.stops--
	if h.stops > 0 {
		return
	}
	h.Resumed = h.World.Now
	if h.World.toss() {
		slices.SortStableFunc(h.backlog, timersFirst)
	}
	for _, e := range h.backlog {
		if e.life == h.Life {
			h.World.At(h.World.Now, h, e.what)
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

// Crash ends everything that the host was doing. Its clock stays.
func (h *Host) Crash() {
	h.Life++
	h.Down = true
	h.stops = 0
	h.backlog = h.backlog[:0]
	resting := h.resting
	h.resting, h.stoppedProcs = nil, 0
	for _, t := range resting {
		t.kill()
	}
	procs := slices.Concat(h.Procs, h.workers)
	h.Procs, h.workers = nil, nil
	for _, p := range procs {
		p.kill()
	}
	h.Clock.crash() // last: what unwinds may still set timers
}

// goOn lets the first of the processes go on that can. The list may have changed
// then.
func goOn(procs []*Routine) bool {
	for _, p := range procs {
		if p.due() {
			p.resume()
			return true
		}
	}
	return false
}

// settle lets every process of the host go on that can, until none can.
func (h *Host) settle() {
	for again := true; again; {
		again = goOn(h.workers) || goOn(h.Procs)
	}
}
