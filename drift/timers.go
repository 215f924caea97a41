package drift

import (
	"container/heap"
	"sync/atomic"
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
	slept      atomic.Int64  // how far the wall clock is ahead of the monotonic one in read, in ns
	clockTimer *clock.Timer  // nil while nothing is pending
	fires      time.Duration // when clockTimer does, on the monotonic clock
	closed     bool
}

// Handler handles the firing of its timer.
type Handler interface {
	Fire()
}

// Timer is one entry of Timers, meant to be embedded by value in the type
// whose Handler it calls. It is pending from Timers.Set until it fires. The
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
func (t *Timers) In(s *seam.Steps) { t.mu.In(s) }

// Set makes the timer call h after d. It replaces an earlier setting.
// Setting a timer of closed Timers does nothing.
func (t *Timers) Set(timer *Timer, d time.Duration, h Handler) { t.SetFrom(timer, t.watch.Now(), d, h) }

// SetFrom is Set with d counted from an instant that was read before.
func (t *Timers) SetFrom(timer *Timer, from Instant, d time.Duration, h Handler) {
	t.SetAround(timer, from, d, 0, h)
}

// SetAround is SetFrom for a timer that may fire early by up to slack: timers
// with the same slack ring together, so that their handlers share costs.
func (t *Timers) SetAround(timer *Timer, from Instant, d, slack time.Duration, h Handler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	timer.due, timer.handler = t.at(from)+max(0, d), h
	if slack > 0 {
		timer.due -= timer.due % slack
	}
	if timer.place > 0 {
		heap.Fix(&t.pending, timer.place-1)
	} else {
		heap.Push(&t.pending, timer)
	}
	t.arm()
}

// Awoke has the timers fire in time although the machine was suspended before now, which was just read. It is
// for the caller who begins something that an older timer ends.
func (t *Timers) Awoke(now Instant) {
	if now.wall-now.mono-time.Duration(t.slept.Load()) < time.Millisecond {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at(now)
	if !t.closed {
		t.arm()
	}
}

// Cancel stops the timer and reports whether it was pending.
// When it reports false the timer has fired, or is about to.
func (t *Timers) Cancel(timer *Timer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer.place == 0 {
		return false
	}
	heap.Remove(&t.pending, timer.place-1)
	// The clock's timer stays set: one early wake-up is cheaper than stopping and
	// starting it for every round that ended in time.
	return true
}

// Len returns the number of pending timers.
func (t *Timers) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

// Close drops every timer without firing it.
func (t *Timers) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, timer := range t.pending {
		timer.place = 0
	}
	t.pending = nil
	if t.clockTimer != nil {
		t.clockTimer.Stop()
		t.clockTimer = nil
	}
}

// at returns when in was, in accumulated time. A reading newer than the last one
// adds what has passed since. Summing differences keeps them going after
// a wall clock was set forward and back again.
func (t *Timers) at(in Instant) time.Duration {
	if in.mono < t.read.mono || in.mono == t.read.mono && in.wall < t.read.wall {
		return t.now - t.read.Sub(in)
	}
	t.now += in.Sub(t.read)
	t.read = in
	t.slept.Store(int64(in.wall - in.mono))
	return t.now
}

// arm makes sure that the clock's timer fires no later than the first entry is due.
func (t *Timers) arm() {
	if len(t.pending) == 0 {
		return
	}
	wake := min(t.pending[0].due, t.now+longestNap)
	if t.clockTimer != nil {
		// After a suspend the clock's timer fires later than it was meant to.
		if t.now+t.fires-t.read.mono <= wake {
			return
		}
		t.clockTimer.Stop()
	}
	// The clock is read again, or the clock's timer would be late by whatever held us
	// up since the last reading.
	in := t.watch.Now()
	d := max(0, wake-t.at(in))
	t.fires = in.mono + d
	t.clockTimer = t.clock.AfterFunc(d, t.fire)
}

// fire calls the handlers that are due. It collects them before it calls any,
// because a Handler may set and cancel timers.
func (t *Timers) fire() {
	t.mu.Lock()
	t.clockTimer = nil
	t.at(t.watch.Now())
	var due []Handler
	for len(t.pending) > 0 && t.pending[0].due <= t.now {
		due = append(due, heap.Pop(&t.pending).(*Timer).handler)
	}
	t.arm()
	t.mu.Unlock()

	for _, h := range due {
		h.Fire()
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
	timer := x.(*Timer)
	*h = append(*h, timer)
	timer.place = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	timer := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	timer.place = 0
	return timer
}
