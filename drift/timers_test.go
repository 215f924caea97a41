package drift

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manual is a clock whose one timer fires when the test says so: no goroutine,
// no waiting.
type manual struct {
	twoFaced
	armed []*armed
}

type armed struct {
	at    time.Duration
	f     func()
	timer *clock.Timer
}

func newManual() *manual {
	return &manual{twoFaced: twoFaced{Clock: clock.NewMock(), wall: time.Unix(1e9, 0)}}
}

func (c *manual) AfterFunc(d time.Duration, f func()) *clock.Timer {
	t := clock.NewMock().AfterFunc(time.Hour, nil)
	c.armed = append(c.armed, &armed{c.mono + d, f, t})
	return t
}

// run lets d pass on both clocks, firing timers as the monotonic one reaches
// them.
func (c *manual) run(d time.Duration) {
	end := c.mono + d
	for {
		slices.SortStableFunc(c.armed, func(a, b *armed) int { return int(a.at - b.at) })
		if len(c.armed) == 0 || c.armed[0].at > end {
			break
		}
		next := c.armed[0]
		c.armed = c.armed[1:]
		c.pass(max(0, next.at-c.mono))
		if next.timer.Stop() {
			next.f()
		}
	}
	c.pass(end - c.mono)
}

func (c *manual) pass(d time.Duration) {
	c.wall, c.mono = c.wall.Add(d), c.mono+d
}

type bell struct {
	timer Timer
	rings []time.Duration
	clk   *manual
}

func (b *bell) Fire() { b.rings = append(b.rings, b.clk.mono) }

func TestTimers_ring_when_due_and_in_order(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	late, early := &bell{clk: clk}, &bell{clk: clk}
	a.Set(&late.timer, 300*ms, late)
	a.Set(&early.timer, 100*ms, early)

	clk.run(time.Second)

	if want := []time.Duration{100 * ms}; !slices.Equal(early.rings, want) {
		t.Errorf("early rang at %v, want %v", early.rings, want)
	}
	if want := []time.Duration{300 * ms}; !slices.Equal(late.rings, want) {
		t.Errorf("late rang at %v, want %v", late.rings, want)
	}
	if a.Len() != 0 {
		t.Errorf("%d timers left", a.Len())
	}
}

func TestCancelled_timer_does_not_ring(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	b := &bell{clk: clk}
	a.Set(&b.timer, 100*ms, b)

	first, second := a.Cancel(&b.timer), a.Cancel(&b.timer)
	clk.run(time.Second)

	if !first || second {
		t.Errorf("Cancel reported %v, then %v; want true, then false", first, second)
	}
	if len(b.rings) != 0 {
		t.Errorf("rang at %v", b.rings)
	}
}

func TestSet_again_moves_the_alarm(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	b := &bell{clk: clk}
	a.Set(&b.timer, 100*ms, b)
	a.Set(&b.timer, 400*ms, b)

	clk.run(time.Second)

	if want := []time.Duration{400 * ms}; !slices.Equal(b.rings, want) {
		t.Errorf("rang at %v, want %v", b.rings, want)
	}
}

// A reading that is old by the time it is used makes no timer late: what held the
// caller up counts.
func TestSet_from_counts_from_the_reading(t *testing.T) {
	for name, newest := range map[string]bool{"the newest of all": true, "older than another": false} {
		t.Run(name, func(t *testing.T) {
			clk := newManual()
			w := NewStopwatch(clk)
			a := NewTimers(w)
			b, other := &bell{clk: clk}, &bell{clk: clk}
			from := w.Now()

			clk.run(300 * ms)
			if !newest {
				a.Set(&other.timer, 5*time.Second, other)
			}
			a.SetFrom(&b.timer, from, 900*ms, b)
			clk.run(2 * time.Second)

			if want := []time.Duration{900 * ms}; !slices.Equal(b.rings, want) {
				t.Errorf("rang at %v, want %v", b.rings, want)
			}
			clk.run(5 * time.Second)
			if want := []time.Duration{5300 * ms}; !newest && !slices.Equal(other.rings, want) {
				t.Errorf("the other rang at %v, want %v", other.rings, want)
			}
		})
	}
}

func TestSet_around_rings_together_and_never_late(t *testing.T) {
	clk := newManual()
	w := NewStopwatch(clk)
	a := NewTimers(w)
	const slack = 100 * ms
	at := map[time.Duration]int{}
	for i := range 100 {
		due := 5*time.Second + time.Duration(10*i)*ms
		b := &Timer{}
		a.SetAround(b, w.Now(), due, slack, handler(func() {
			if early := due - clk.mono; early < 0 || early >= slack {
				t.Errorf("due at %v, rang at %v", due, clk.mono)
			}
			at[clk.mono]++
		}))
	}

	clk.run(10 * time.Second)

	if len(at) != 10 {
		t.Errorf("rang at %d different times, want 10", len(at))
	}
}

// The monotonic clock and with it every timer stands still in a suspend. The
// timers looks at the wall clock at least once a second, so a deadline that
// passed meanwhile rings within a second of the resume, not a TTL later.
func TestS12_alarm_rings_within_a_second_of_the_resume(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	b := &bell{clk: clk}
	a.Set(&b.timer, 30*time.Second, b)
	clk.run(500 * ms)

	clk.wall = clk.wall.Add(time.Minute) // suspended
	resumed := clk.mono
	clk.run(5 * time.Second)

	if len(b.rings) != 1 || b.rings[0]-resumed > time.Second {
		t.Errorf("rang at %v, resumed at %v", b.rings, resumed)
	}
}

// What is set after the resume is not late at all, although the clock's timer
// that is running is: it was set for the time before.
func TestS12_what_is_set_after_the_resume_rings_in_time(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	early, late := &bell{clk: clk}, &bell{clk: clk}
	a.Set(&late.timer, 5*time.Minute, late)
	clk.run(300 * ms)
	clk.wall = clk.wall.Add(time.Minute) // suspended

	a.Set(&early.timer, 100*ms, early)
	clk.run(2 * time.Second)

	if want := []time.Duration{400 * ms}; !slices.Equal(early.rings, want) {
		t.Errorf("rang at %v, want %v", early.rings, want)
	}
}

// Whoever begins something after the resume that an older timer ends says so, and that timer is not late.
func TestS12_an_older_timer_rings_in_time_for_who_has_awoken(t *testing.T) {
	clk := newManual()
	watch := NewStopwatch(clk)
	a := NewTimers(watch)
	b := &bell{clk: clk}
	a.Set(&b.timer, time.Minute+400*ms, b)
	clk.run(300 * ms)
	clk.wall = clk.wall.Add(time.Minute) // suspended

	a.Awoke(watch.Now())
	clk.run(2 * time.Second)

	if want := []time.Duration{400 * ms}; !slices.Equal(b.rings, want) {
		t.Errorf("rang at %v, want %v", b.rings, want)
	}
}

func TestTimers_still_ring_after_the_wall_clock_went_forward_and_back(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	first, second := &bell{clk: clk}, &bell{clk: clk}
	a.Set(&first.timer, time.Second, first)
	clk.wall = clk.wall.Add(time.Hour)
	clk.run(time.Second)
	clk.wall = clk.wall.Add(-time.Hour)
	a.Set(&second.timer, 100*ms, second)

	clk.run(time.Second)

	if len(first.rings) != 1 || len(second.rings) != 1 {
		t.Errorf("rang %d and %d times, want once each", len(first.rings), len(second.rings))
	}
}

func TestClosed_timers_rings_nothing(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	b := &bell{clk: clk}
	a.Set(&b.timer, 100*ms, b)

	a.Close()
	if clk.armed[0].timer.Stop() {
		t.Error("the clock's timer goes on")
	}
	a.Set(&b.timer, 100*ms, b)
	clk.run(time.Second)

	if len(b.rings) != 0 || a.Len() != 0 || a.Cancel(&b.timer) {
		t.Errorf("rang at %v, %d timers left", b.rings, a.Len())
	}
}

// However many are pending, one timer of the clock runs, and it is set anew only for one that
// is due earlier.
func TestTimers_run_on_one_timer_of_the_clock(t *testing.T) {
	clk := newManual()
	a := NewTimers(NewStopwatch(clk))
	armed := func(want int) {
		t.Helper()
		if len(clk.armed) != want {
			t.Errorf("%d timers of the clock, want %d", len(clk.armed), want)
		}
	}
	var bells [4]bell
	for i, due := range []time.Duration{300 * ms, 400 * ms, 100 * ms, 100 * ms} {
		bells[i].clk = clk
		a.Set(&bells[i].timer, due, &bells[i])
	}
	armed(2)
	if clk.armed[0].timer.Stop() {
		t.Error("the first goes on beside the second")
	}
	clk.armed = clk.armed[1:]
	clk.run(100 * ms)
	armed(1)
	clk.run(200 * ms)
	armed(1)
	clk.run(time.Second)
	armed(0)
}

// Against a model: whatever is set, moved and cancelled, each timer rings
// exactly when the model says, never early, never twice.
func TestTimers_agrees_with_a_sorted_list(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clk := newManual()
		a := NewTimers(NewStopwatch(clk))
		bells := make([]*bell, 8)
		due := map[*bell]time.Duration{}
		want := map[*bell][]time.Duration{}
		for i := range bells {
			bells[i] = &bell{clk: clk}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			b := rapid.SampledFrom(bells).Draw(t, "bell")
			d := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * ms
			switch rapid.SampledFrom([]string{"set", "cancel", "run"}).Draw(t, "do") {
			case "set":
				a.Set(&b.timer, d, b)
				due[b] = clk.mono + d
			case "cancel":
				a.Cancel(&b.timer)
				delete(due, b)
			case "run":
				clk.run(d)
				for b, at := range due {
					if at <= clk.mono {
						want[b] = append(want[b], at)
						delete(due, b)
					}
				}
			}
		}
		for i, b := range bells {
			if !slices.Equal(b.rings, want[b]) {
				t.Fatalf("bell %d rang at %v, want %v", i, b.rings, want[b])
			}
		}
	})
}

func TestTimers_on_the_system_clock(t *testing.T) {
	a := NewTimers(NewStopwatch(clock.New()))
	defer a.Close()
	var wg sync.WaitGroup
	wg.Add(100)
	pending := make([]Timer, 100)
	for i := range pending {
		a.Set(&pending[i], time.Duration(i%10)*ms, handler(wg.Done))
	}
	wg.Wait() // a lost timer hangs here
}

type handler func()

func (f handler) Fire() { f() }

func BenchmarkTimersSetCancel(b *testing.B) {
	a := NewTimers(NewStopwatch(clock.New()))
	defer a.Close()
	held := make([]Timer, 10_000)
	for i := range held {
		a.Set(&held[i], time.Hour, handler(func() {}))
	}
	var al Timer
	r := handler(func() {})
	b.ReportAllocs()
	for b.Loop() {
		a.Set(&al, 50*ms, r)
		a.Cancel(&al)
	}
}
