package drift

import (
	"container/heap"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/seam"
)

// longestNap bounds how long Timers with anything pending sleep. Timers run
// on the monotonic clock, so after a suspend they are late by the time that was
// slept. Looking at the stopwatch this often announces a loss on resume (S12).
const longestNap = time.Second

// Timers keeps any number of timers on one timer of the clock, so that ten
// thousand held locks cost ten thousand heap entries and not as many timers.
//
// Handlers are called one after another, outside every mutex of the Timers, on the
// goroutine of the clock's timer; a Handler must not block. Timers are safe
// for concurrent use.
type Timers struct {
	clock clock.Clock
	watch *Stopwatch

	mu         seam.Mutex
	pending    timerHeap
	now        time.Duration // accumulated time, never steps back
	read       Instant       // the reading that now belongs to
	clockTimer *clock.Timer  // nil while nothing is pending
	fires      time.Duration // when clockTimer does, on the monotonic clock
	closed     bool
}

// Handler handles the firing of its timer.
type Handler interface {
	Fire()
}

// Timer is one entry of Timers, meant to be embedded by value in what it
// wakes. It is pending from Timers.Set until it fires. The
// zero Timer is ready to use.
type Timer struct {
	due     time.Duration
	place   int // index in the heap plus one; zero: not pending
	handler Handler
}

// NewTimers returns an empty set of timers on the stopwatch's clock.
func NewTimers(watch *Stopwatch) *Timers {
	return &Timers{clock: watch.clock, watch: watch, read: watch.Now()}
}

// In makes every use of the mutex one of the given steps. It is called before
// any timer is set.
func (a *Timers) In(s *seam.Steps) { a.mu.In(s) }

// Set makes the timer call r after d, instead of what it was set to before.
// Setting a timer of closed Timers does nothing.
func (a *Timers) Set(al *Timer, d time.Duration, r Handler) { a.SetFrom(al, a.watch.Now(), d, r) }

// SetFrom is Set with d counted from an instant that was read before.
func (a *Timers) SetFrom(al *Timer, from Instant, d time.Duration, r Handler) {
	a.SetAround(al, from, d, 0, r)
}

// SetAround is SetFrom for a timer that may fire early by up to slack: timers
// with the same slack ring together, which lets what they do share its cost.
func (a *Timers) SetAround(al *Timer, from Instant, d, slack time.Duration, r Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	al.due, al.handler = a.at(from)+max(0, d), r
	if slack > 0 {
		al.due -= al.due % slack
	}
	if al.place > 0 {
		heap.Fix(&a.pending, al.place-1)
	} else {
		heap.Push(&a.pending, al)
	}
	a.arm()
}

// Cancel stops the timer and reports whether it was pending.
// When it reports false the timer has fired, or is about to.
func (a *Timers) Cancel(al *Timer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if al.place == 0 {
		return false
	}
	heap.Remove(&a.pending, al.place-1)
	// The timer stays set: one early wake-up is cheaper than a timer
	// stopped and started for every round that ended in time.
	return true
}

// Len returns the number of pending timers.
func (a *Timers) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pending)
}

// Close drops every timer without firing it.
func (a *Timers) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, al := range a.pending {
		al.place = 0
	}
	a.pending = nil
	if a.clockTimer != nil {
		a.clockTimer.Stop()
		a.clockTimer = nil
	}
}

// at returns when in was, in accumulated time. A reading newer than the last one
// adds what has passed since. Summing differences keeps them going after
// a wall clock was set forward and back again.
func (a *Timers) at(in Instant) time.Duration {
	if in.mono < a.read.mono || in.mono == a.read.mono && in.wall < a.read.wall {
		return a.now - a.read.Sub(in)
	}
	a.now += in.Sub(a.read)
	a.read = in
	return a.now
}

// arm makes sure that the timer fires no later than the first timer is due.
func (a *Timers) arm() {
	if len(a.pending) == 0 {
		return
	}
	wake := min(a.pending[0].due, a.now+longestNap)
	if a.clockTimer != nil {
		// After a suspend it fires later than it was meant to.
		if a.now+a.fires-a.read.mono <= wake {
			return
		}
		a.clockTimer.Stop()
	}
	// The clock is read again, or the timer would be late by whatever held us up
	// since the last reading.
	in := a.watch.Now()
	d := max(0, wake-a.at(in))
	a.fires = in.mono + d
	a.clockTimer = a.clock.AfterFunc(d, a.fire)
}

// fire calls what is due. It collects first and calls afterwards, because a
// Handler may set and cancel timers.
func (a *Timers) fire() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.clockTimer = nil
	a.at(a.watch.Now())
	var due []Handler
	for len(a.pending) > 0 && a.pending[0].due <= a.now {
		due = append(due, heap.Pop(&a.pending).(*Timer).handler)
	}
	a.arm()
	a.mu.Unlock()

	for _, r := range due {
		r.Fire()
	}
}

// timerHeap orders timers by due time.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	al := x.(*Timer)
	*h = append(*h, al)
	al.place = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	al := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	al.place = 0
	return al
}
