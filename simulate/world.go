package simulate

import (
	"fmt"
	"runtime/debug"
	"time"
)

// world runs one schedule: everything that happens is an event at an instant of
// true time, and one goroutine runs them in order. Nothing in here reads a real
// clock, starts a goroutine or depends on the order of a map, so a seed always
// gives the same run.
type world struct {
	now    time.Duration // true time since the start of the schedule
	seq    uint64
	events eventHeap
	ran    uint64 // events that did something
	hash   uint64 // over everything that happened, in order

	seed uint64 // of the schedule, to name it by

	until   time.Duration // of run
	stop    func() bool   // of run
	thread  *thread       // that runs the events now
	woken   *thread       // that is to go on
	threads []*thread
	spares  []*thread

	active  *host    // whose event is under way
	running *Process // the process whose code runs now, if any
	procs   []*Process
	rough   time.Duration // when the last disturbance of any kind was over
	// after is called when an event and all that follows from it at the same
	// instant is done, with the host that it happened to, or nil.
	after  func(*host)
	ended  bool
	broken bool      // simulated code has panicked
	dice   *stream   // for what happens in either order; nil: always the same
	calls  []*call   // to be used again
	cover  *coverage // which states were reached; nil: nobody asks
}

// call returns a call that nobody uses.
func (w *world) call() *call {
	n := len(w.calls) - 1
	if n < 0 {
		return &call{}
	}
	c := w.calls[n]
	w.calls = w.calls[:n]
	return c
}

// toss decides between two things that may both happen first.
func (w *world) toss() bool { return w.dice != nil && w.dice.chance(500) }

// runner is what an event does.
type runner interface{ run() }

// action is a runner made of a function.
type action func()

func (a action) run() { a() }

// event is something that happens to a host at an instant, or to the world if
// there is no host. Events at the same instant happen in the order in which
// they were made.
type event struct {
	at   time.Duration
	seq  uint64
	host *host
	life uint32 // of the host: what was due in an earlier life does not happen
	what runner
}

func newWorld() *world {
	return &world{hash: hashOffset, after: func(*host) {}}
}

// at makes what happen to h at the given instant.
func (w *world) at(at time.Duration, h *host, what runner) {
	e := event{at: max(at, w.now), seq: w.seq, host: h, what: what}
	if h != nil {
		e.life = h.life
	}
	w.seq++
	w.events.push(e)
}

func (w *world) step() {
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
		e.what.run()
		w.active = nil
		h.settle()
	} else {
		w.mix(uint64(e.at) << 8)
		w.ran++
		e.what.run()
	}
	w.after(e.host)
}

// blamed is a panic of simulated code, with where it happened.
type blamed struct{ text string }

func (b *blamed) Error() string { return b.text }

// blame says in which schedule, when and where simulated code has panicked, and
// keeps the stack of its coroutine. It is called where that is still there.
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

// end stops every process that is still blocked, so that no coroutine is left.
// After a panic they stay where they are: what they would do when they are stopped
// may wait for a mutex that the code which panicked has locked.
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

// eventHeap is a four-ary heap of events by time and order of making: half the
// depth of a binary one, and without the interface calls of container/heap,
// which were a third of a schedule's time.
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
