// Package world is the simulated world: events, threads, hosts, clocks and dice. Nothing in
// it reads a real clock, starts a goroutine or depends on the order of a map.
package world

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// World runs one schedule. Everything that happens is an event at an instant of true
// time, and one goroutine runs the events in order. Nothing reads a real clock, starts a
// goroutine or depends on the order of a map, so a seed always gives the same run.
type World struct {
	Now    time.Duration // true time since the start of the schedule
	seq    uint64
	events eventHeap
	Ran    uint64 // events that did something
	Hash   uint64 // over everything that happened, in order

	Seed uint64         // of the schedule, to name it by
	Beat *atomic.Uint64 // shows that events go on; nil: unobserved

	until   time.Duration // argument of run
	stop    func() bool   // argument of run
	thread  *thread       // the thread that runs events now
	woken   *thread       // the thread that goes on next
	threads []*thread
	spares  []*thread

	Active  *Host    // whose event is under way
	Timing  bool     // that is a timer which fires
	Running *Routine // the process whose code runs now, if any
	procs   []*Routine
	Rough   time.Duration // when the last disturbance of any kind was or will be over
	// Observe is called when an event and all that follows from it at the same
	// instant is done, with the host that it happened to, or nil.
	Observe func(*Host)
	ended   bool
	broken  bool  // simulated code has panicked
	Dice    *Dice // decides what may happen in either order; nil: the order is fixed
}

// toss decides which of two things happens first.
func (w *World) toss() bool { return w.Dice != nil && w.Dice.Chance(500) }

// Runner is what an event does.
type Runner interface{ Run() }

// Action is a runner made of a function.
type Action func()

func (a Action) Run() { a() }

// event is something that happens to a host at an instant, or to the world if host is
// nil. Events at the same instant happen in the order in which they were made.
type event struct {
	at   time.Duration
	seq  uint64
	host *Host
	life uint32 // of the host: an event that was due in an earlier life does not happen
	what Runner
}

func New() *World {
	return &World{Hash: HashOffset, Observe: func(*Host) {}}
}

// At adds an event: what happens to h at the given instant.
func (w *World) At(at time.Duration, h *Host, what Runner) {
	e := event{at: max(at, w.Now), seq: w.seq, host: h, what: what}
	if h != nil {
		e.life = h.Life
	}
	w.seq++
	w.events.push(e)
}

func (w *World) step() {
	if w.Beat != nil && w.Ran%16 == 0 {
		w.Beat.Store(w.Ran + 1)
	}
	e := w.events.pop()
	w.Now = e.at
	if h := e.host; h != nil {
		if e.life != h.Life || h.Down {
			return
		}
		if h.Stopped() {
			h.backlog = append(h.backlog, e)
			return
		}
		w.Mix(uint64(e.at)<<8 | uint64(h.Id))
		w.Ran++
		w.Active = h
		_, w.Timing = e.what.(*timer)
		e.what.Run()
		w.Active, w.Timing = nil, false
		h.settle()
	} else {
		w.Mix(uint64(e.at) << 8)
		w.Ran++
		e.what.Run()
	}
	w.Observe(e.host)
}

// blamed is a panic of simulated code, and where it happened.
type blamed struct{ text string }

func (b *blamed) Error() string { return b.text }

// blame says in which schedule, when and where simulated code panicked. It must be called
// in the coroutine that panicked, to keep its stack.
func (w *World) blame(panicked any, where string) *blamed {
	w.broken = true
	if b, ok := panicked.(*blamed); ok {
		return b
	}
	return &blamed{fmt.Sprintf("simulate: seed %d, %.3fs: %s: %v\n\n%s", w.Seed, w.Now.Seconds(), where, panicked, debug.Stack())}
}

// what names the host whose event is under way.
func (w *World) what() string {
	if w.Active == nil {
		return "no host"
	}
	return w.Active.Name
}

// End stops every process that is still blocked, so that no coroutine is left. After a
// panic they stay where they are: their deferred functions might wait for a mutex that
// the code that panicked has locked.
func (w *World) End() {
	if w.broken {
		return
	}
	w.ended = true
	for _, p := range w.procs {
		p.kill()
	}
	for _, t := range w.threads {
		t.kill()
	}
	w.events = nil
}

const (
	HashOffset = 14695981039346656037
	HashPrime  = 1099511628211
)

// Mix folds a number into the state hash.
func (w *World) Mix(v uint64) {
	w.Hash = (w.Hash ^ v) * HashPrime
	w.Hash ^= w.Hash >> 29
}

func (w *World) MixString(s string) {
	for i := range len(s) {
		w.Hash = (w.Hash ^ uint64(s[i])) * HashPrime
	}
}

// eventHeap is a four-ary heap of events by time and sequence. It is half as deep as a
// binary one, and does without the interface calls of container/heap, which took a third
// of a schedule's time.
type eventHeap []event

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
	*h = s
}

func (h *eventHeap) pop() event {
	s := *h
	top := s[0]
	n := len(s) - 1
	last := s[n]
	s[n] = event{}
	s = s[:n]
	*h = s
	if n == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(&last) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = last
	return top
}
