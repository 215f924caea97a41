package drift

import (
	"container/heap"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// longestNap bounds how long an Agenda with pending alarms sleeps. Timers run
// on the monotonic clock, so after a suspend they are late by the time that was
// slept; looking at the stopwatch this often is what announces a loss on
// resume (S12).
const longestNap = time.Second

// Agenda keeps any number of alarms on one timer of the clock, so that ten
// thousand held locks cost ten thousand heap entries and not as many timers.
//
// Alarms ring one after another, outside every mutex of the Agenda, on the
// goroutine of the clock's timer; a Ringer must not block. An Agenda is safe
// for concurrent use.
type Agenda struct {
	clock clock.Clock
	watch *Stopwatch

	mu     sync.Mutex
	alarms alarmHeap
	now    time.Duration // accumulated time, never steps back
	read   Instant       // the reading that now belongs to
	timer  *clock.Timer  // nil while nothing is pending
	wake   time.Duration // when timer fires
	closed bool
}

// Ringer is told that its alarm is due.
type Ringer interface {
	Ring()
}

// Alarm is one entry of an Agenda, meant to be embedded by value in what it
// wakes. It is not pending until Agenda.Set, and not pending any more when it
// rings. The zero Alarm is ready to use.
type Alarm struct {
	due   time.Duration
	place int // index in the heap plus one; zero: not pending
	ring  Ringer
}

// NewAgenda returns an empty agenda on the stopwatch's clock.
func NewAgenda(watch *Stopwatch) *Agenda {
	return &Agenda{clock: watch.clock, watch: watch, read: watch.Now()}
}

// Set makes the alarm ring r after d, instead of what it was set to before.
// Setting an alarm of a closed agenda does nothing.
func (a *Agenda) Set(al *Alarm, d time.Duration, r Ringer) { a.SetFrom(al, a.watch.Now(), d, r) }

// SetFrom is Set with d counted from an instant that was read before.
func (a *Agenda) SetFrom(al *Alarm, from Instant, d time.Duration, r Ringer) {
	a.SetAround(al, from, d, 0, r)
}

// SetAround is SetFrom for an alarm that may ring early by up to slack: alarms
// with the same slack ring together, which lets what they do share its cost.
func (a *Agenda) SetAround(al *Alarm, from Instant, d, slack time.Duration, r Ringer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	al.due, al.ring = a.at(from)+max(0, d), r
	if slack > 0 {
		al.due -= al.due % slack
	}
	if al.place > 0 {
		heap.Fix(&a.alarms, al.place-1)
	} else {
		heap.Push(&a.alarms, al)
	}
	a.arm()
}

// Cancel takes the alarm off the agenda and reports whether it was pending.
// When it reports false the alarm has rung, or is about to.
func (a *Agenda) Cancel(al *Alarm) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if al.place == 0 {
		return false
	}
	heap.Remove(&a.alarms, al.place-1)
	// The timer stays as it is: one early wake-up is cheaper than a timer
	// stopped and started for every round that ended in time.
	return true
}

// Len returns the number of pending alarms.
func (a *Agenda) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.alarms)
}

// Close drops every alarm without ringing it.
func (a *Agenda) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, al := range a.alarms {
		al.place = 0
	}
	a.alarms = nil
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// at returns when in was, in accumulated time. A reading newer than the last one
// adds what has passed since. Summing differences keeps the agenda going after
// a wall clock was set forward and back again.
func (a *Agenda) at(in Instant) time.Duration {
	if in.mono < a.read.mono {
		return a.now - a.read.Sub(in)
	}
	a.now += in.Sub(a.read)
	a.read = in
	return a.now
}

// arm makes sure that the timer fires no later than the first alarm is due.
func (a *Agenda) arm() {
	if len(a.alarms) == 0 {
		return
	}
	wake := min(a.alarms[0].due, a.now+longestNap)
	if a.timer != nil {
		if a.wake <= wake {
			return
		}
		a.timer.Stop()
	}
	a.wake = wake
	// The clock is read again, or the timer would be late by whatever held us up
	// since the last reading.
	a.timer = a.clock.AfterFunc(wake-a.at(a.watch.Now()), a.fire)
}

// fire rings what is due. It collects first and rings afterwards, because a
// Ringer may set and cancel alarms.
func (a *Agenda) fire() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.timer = nil
	a.at(a.watch.Now())
	var due []Ringer
	for len(a.alarms) > 0 && a.alarms[0].due <= a.now {
		due = append(due, heap.Pop(&a.alarms).(*Alarm).ring)
	}
	a.arm()
	a.mu.Unlock()

	for _, r := range due {
		r.Ring()
	}
}

// alarmHeap orders alarms by due time.
type alarmHeap []*Alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *alarmHeap) Push(x any) {
	al := x.(*Alarm)
	*h = append(*h, al)
	al.place = len(*h)
}

func (h *alarmHeap) Pop() any {
	old := *h
	al := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	al.place = 0
	return al
}
