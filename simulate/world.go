package simulate

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// world runs one schedule. Everything that happens is an event at an instant of true
// time, and one goroutine runs the events in order. Nothing reads a real clock, starts a
// goroutine or depends on the order of a map, so a seed always gives the same run.
type world struct {
	now    time.Duration // true time since the start of the schedule
	seq    uint64
	events eventHeap
	ran    uint64 // events that did something
	hash   uint64 // over everything that happened, in order

	seed uint64         // of the schedule, to name it by
	beat *atomic.Uint64 // shows that events go on; nil: nobody looks

	until   time.Duration // argument of run
	stop    func() bool   // argument of run
	thread  *thread       // the one that runs events now
	woken   *thread       // the one that is to go on next
	threads []*thread
	spares  []*thread

	active  *host    // whose event is under way
	timing  bool     // that is a timer which fires
	running *Process // the process whose code runs now, if any
	procs   []*Process
	rough   time.Duration // when the last disturbance of any kind was or will be over
	// after is called when an event and all that follows from it at the same
	// instant is done, with the host that it happened to, or nil.
	after  func(*host)
	ended  bool
	broken bool    // simulated code has panicked
	dice   *stream // decides what may happen in either order; nil: the order is fixed
	calls  []*call // free ones, to be used again
}

// call returns a free call.
func (w *world) call() *call {
	n := len(w.calls) - 1
	if n < 0 {
		return &call{}
	}
	c := w.calls[n]
	w.calls = w.calls[:n]
	return c
}

// toss decides which of two things happens first.
func (w *world) toss() bool { return w.dice != nil && w.dice.chance(500) }

// runner is what an event does.
type runner interface{ run() }

// action is a runner made of a function.
type action func()

func (a action) run() { a() }

// event is something that happens to a host at an instant, or to the world if host is
// nil. Events at the same instant happen in the order in which they were made.
type event struct {
	at   time.Duration
	seq  uint64
	host *host
	life uint32 // of the host: an event that was due in an earlier life does not happen
	what runner
}

func newWorld() *world {
	return &world{hash: hashOffset, after: func(*host) {}}
}

// at adds an event: what happens to h at the given instant.
func (w *world) at(at time.Duration, h *host, what runner) {
	e := event{at: max(at, w.now), seq: w.seq, host: h, what: what}
	if h != nil {
		e.life = h.life
	}
	w.seq++
	w.events.push(e)
}

func (w *world) step() {
	if w.beat != nil && w.ran%16 == 0 {
		w.beat.Store(w.ran + 1)
	}
	e := w.events.pop()
	w.now = e.at
	if h := e.host; h != nil {
		if e.life != h.life || h.down {
			return
		}
		if h.stopped() {
			h.backlog = append(h.backlog, e)
			return
		}
		w.mix(uint64(e.at)<<8 | uint64(h.id))
		w.ran++
		w.active = h
		_, w.timing = e.what.(*timer)
		e.what.run()
		w.active, w.timing = nil, false
		h.settle()
	} else {
		w.mix(uint64(e.at) << 8)
		w.ran++
		e.what.run()
	}
	w.after(e.host)
}

// blamed is a panic of simulated code, and where it happened.
type blamed struct{ text string }

func (b *blamed) Error() string { return b.text }

// blame says in which schedule, when and where simulated code panicked. It must be called
// in the coroutine that panicked, to keep its stack.
func (w *world) blame(panicked any, where string) *blamed {
	w.broken = true
	if b, ok := panicked.(*blamed); ok {
		return b
	}
	return &blamed{fmt.Sprintf("simulate: seed %d, %.3fs: %s: %v\n\n%s", w.seed, w.now.Seconds(), where, panicked, debug.Stack())}
}

// what names the host whose event is under way.
func (w *world) what() string {
	if w.active == nil {
		return "no host"
	}
	return w.active.name
}

// end stops every process that is still blocked, so that no coroutine is left. After a
// panic they stay where they are: their deferred functions might wait for a mutex that
// the code that panicked has locked.
func (w *world) end() {
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
	hashOffset = 14695981039346656037
	hashPrime  = 1099511628211
)

// mix folds a number into the state hash.
func (w *world) mix(v uint64) {
	w.hash = (w.hash ^ v) * hashPrime
	w.hash ^= w.hash >> 29
}

func (w *world) mixString(s string) {
	for i := range len(s) {
		w.hash = (w.hash ^ uint64(s[i])) * hashPrime
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
