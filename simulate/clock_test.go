package simulate

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fired runs the world and returns when a timer of 10s, set at the start, fires.
func fired(change func(w *world, h *host)) time.Duration {
	w := newWorld()
	h := newHost(w, 1, "host")
	at := time.Duration(-1)
	h.clock.AfterFunc(10*time.Second, func() { at = w.now })
	change(w, h)
	w.run(time.Minute, func() bool { return false })
	return at
}

func TestTimers_follow_the_monotonic_clock(t *testing.T) {
	later := func(w *world, at time.Duration, f func()) { w.at(at, nil, action(f)) }
	for _, c := range []struct {
		name   string
		change func(w *world, h *host)
		want   time.Duration
	}{
		{"an honest clock", func(*world, *host) {}, 10 * time.Second},
		{"twice as fast", func(_ *world, h *host) { h.clock.setRate(1_000_000) }, 5 * time.Second},
		{"twice as fast from the middle on", func(w *world, h *host) {
			later(w, 4*time.Second, func() { h.clock.setRate(1_000_000) })
		}, 7 * time.Second},
		{"half as fast", func(_ *world, h *host) { h.clock.setRate(-500_000) }, 20 * time.Second},
		{"the wall clock is set forward", func(w *world, h *host) {
			later(w, time.Second, func() { h.clock.step(time.Hour) })
		}, 10 * time.Second},
		{"the wall clock stands still", func(_ *world, h *host) { h.clock.freeze() }, 10 * time.Second},
		{"suspended for 7s", func(w *world, h *host) {
			later(w, 3*time.Second, h.suspend)
			later(w, 10*time.Second, h.wake)
		}, 17 * time.Second},
		{"paused beyond its time", func(w *world, h *host) {
			later(w, 3*time.Second, h.pause)
			later(w, 30*time.Second, h.resume)
		}, 30 * time.Second},
		{"crashed", func(w *world, h *host) { later(w, 3*time.Second, h.crash) }, -1},
	} {
		if got := fired(c.change); got != c.want {
			t.Errorf("%s: fired after %v, want %v", c.name, got, c.want)
		}
	}
}

func TestA_suspend_hides_from_the_monotonic_clock_only(t *testing.T) {
	w := newWorld()
	h := newHost(w, 1, "host")
	w.at(time.Second, nil, action(h.suspend))
	w.at(6*time.Second, nil, action(h.wake))
	w.run(10*time.Second, func() bool { return false })
	if got := h.clock.Monotonic(); got != 5*time.Second {
		t.Errorf("monotonic %v, want 5s", got)
	}
	if got := h.clock.Since(epoch); got != 10*time.Second {
		t.Errorf("wall %v, want 10s", got)
	}
}

func TestA_stopped_timer_does_not_fire(t *testing.T) {
	w := newWorld()
	h := newHost(w, 1, "host")
	timer := h.clock.AfterFunc(time.Second, func() { t.Error("fired") })
	if !timer.Stop() {
		t.Error("Stop says that the timer was not pending")
	}
	w.run(time.Minute, func() bool { return false })
}

func TestContexts_end_by_the_clock(t *testing.T) {
	w := newWorld()
	h := newHost(w, 1, "host")
	ctx, cancel := h.clock.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	child, stop := context.WithCancel(ctx)
	defer stop()
	w.run(2*time.Second, func() bool { return false })
	if ctx.Err() != nil {
		t.Fatalf("ended after 2s: %v", ctx.Err())
	}
	w.run(3*time.Second, func() bool { return false })
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", ctx.Err())
	}
	if child.Err() == nil {
		t.Error("a context derived from it goes on")
	}
}
