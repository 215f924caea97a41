package world

import (
	"iter"
	"slices"
	"time"
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

// Run lets events happen until the given instant, or until stop reports true.
func (w *World) Run(until time.Duration, stop func() bool) {
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
		w.Now = max(w.Now, until)
	}
}

// due reports whether there is an event to be run.
func (w *World) due() bool {
	return len(w.events) > 0 && w.events[0].at <= w.until && !w.stop()
}

// spare returns a thread that does nothing.
func (w *World) spare() *thread {
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

// Rest stops the running thread for d of true time, in the middle of an event of
// h. The other events of h happen meanwhile.
func (h *Host) Rest(d time.Duration) {
	w := h.World
	t := w.thread
	h.resting = append(h.resting, t)
	timing := w.Timing
	h.yields(d, Action(func() { w.woken = t }))
	w.Active, w.Timing = nil, false // or the checks would be stopped as its code is
	if !t.yield(struct{}{}) {
		panic(errKilled)
	}
	h.resting = slices.DeleteFunc(h.resting, func(o *thread) bool { return o == t })
	w.Active, w.Timing = h, timing
	h.Resumed = w.Now
}

// yields has the other code of the host go on now, and the resting code after d.
func (h *Host) yields(d time.Duration, resume Action) {
	w := h.World
	w.At(w.Now, h, Action(func() {})) // code that was woken before can run
	w.At(w.Now+d, h, resume)
}

// Rests reports whether any code of the host is stopped in the middle.
func (h *Host) Rests() bool { return len(h.resting) > 0 || h.stoppedProcs > 0 }

// Hangs reports whether the host stands still, or some of its code does.
func (h *Host) Hangs() bool { return h.Stopped() || h.Rests() }
