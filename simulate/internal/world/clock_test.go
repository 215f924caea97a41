package world

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fired runs the world and returns when a timer of 10s, set at the start, fires.
func fired(change func(w *World, h *Host)) time.Duration {
	w := New()
	h := NewHost(w, 1, "host")
	at := time.Duration(-1)
	h.Clock.AfterFunc(10*time.Second, func() { at = w.Now })
	change(w, h)
	w.Run(time.Minute, func() bool { return false })
	return at
}

func TestTimers_follow_the_monotonic_clock(t *testing.T) {
	later := func(w *World, at time.Duration, f func()) { w.At(at, nil, Action(f)) }
	for _, c := range []struct {
		name   string
		change func(w *World, h *Host)
		want   time.Duration
	}{
		{"an honest clock", func(*World, *Host) {}, 10 * time.Second},
		{"twice as fast", func(_ *World, h *Host) { h.Clock.SetRate(1_000_000) }, 5 * time.Second},
		{"twice as fast from the middle on", func(w *World, h *Host) {
			later(w, 4*time.Second, func() { h.Clock.SetRate(1_000_000) })
		}, 7 * time.Second},
		{"half as fast", func(_ *World, h *Host) { h.Clock.SetRate(-500_000) }, 20 * time.Second},
		{"the wall clock is set forward", func(w *World, h *Host) {
			later(w, time.Second, func() { h.Clock.Step(time.Hour) })
		}, 10 * time.Second},
		{"the wall clock stands still", func(_ *World, h *Host) { h.Clock.Freeze() }, 10 * time.Second},
		{"suspended for 7s", func(w *World, h *Host) {
			later(w, 3*time.Second, h.Suspend)
			later(w, 10*time.Second, h.Wake)
		}, 17 * time.Second},
		{"paused beyond its time", func(w *World, h *Host) {
			later(w, 3*time.Second, h.Pause)
			later(w, 30*time.Second, h.Resume)
		}, 30 * time.Second},
		{"crashed", func(w *World, h *Host) { later(w, 3*time.Second, h.Crash) }, -1},
	} {
		if got := fired(c.change); got != c.want {
			t.Errorf("%s: fired after %v, want %v", c.name, got, c.want)
		}
	}
}

func TestA_suspend_hides_from_the_monotonic_clock_only(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	w.At(time.Second, nil, Action(h.Suspend))
	w.At(6*time.Second, nil, Action(h.Wake))
	w.Run(10*time.Second, func() bool { return false })
	if got := h.Clock.Monotonic(); got != 5*time.Second {
		t.Errorf("monotonic %v, want 5s", got)
	}
	if got := h.Clock.Since(Epoch); got != 10*time.Second {
		t.Errorf("wall %v, want 10s", got)
	}
}

func TestA_stopped_timer_does_not_fire(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	timer := h.Clock.AfterFunc(time.Second, func() { t.Error("fired") })
	if !timer.Stop() {
		t.Error("Stop says that the timer was not pending")
	}
	w.Run(time.Minute, func() bool { return false })
}

func TestContexts_end_by_the_clock(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	ctx, cancel := h.Clock.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	child, stop := context.WithCancel(ctx)
	defer stop()
	w.Run(2*time.Second, func() bool { return false })
	if ctx.Err() != nil {
		t.Fatalf("ended after 2s: %v", ctx.Err())
	}
	w.Run(3*time.Second, func() bool { return false })
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", ctx.Err())
	}
	if child.Err() == nil {
		t.Error("a context derived from it goes on")
	}
}
