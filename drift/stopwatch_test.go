package drift

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// twoFaced is a clock whose wall and monotonic readings go their own ways.
type twoFaced struct {
	clock.Clock
	wall time.Time
	mono time.Duration
}

func (c *twoFaced) Now() time.Time           { return c.wall }
func (c *twoFaced) Monotonic() time.Duration { return c.mono }

func TestElapsed_is_the_larger_of_monotonic_and_wall(t *testing.T) {
	for _, c := range []struct {
		name             string
		wall, mono, want time.Duration
	}{
		{"both agree", time.Second, time.Second, time.Second},
		{"nothing passed", 0, 0, 0},
		{"S11: the wall clock stepped back", -time.Hour, time.Second, time.Second},
		{"S12: suspended, the monotonic clock stood still", time.Minute, 5 * ms, time.Minute},
		{"the wall clock stepped forward", time.Hour, time.Second, time.Hour},
		{"both ran backwards", -time.Second, -time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := &twoFaced{wall: time.Unix(1e9, 0)}
			watch := NewStopwatch(clk)
			start := watch.Now()

			clk.wall, clk.mono = clk.wall.Add(c.wall), clk.mono+c.mono

			if got := watch.Since(start); got != c.want {
				t.Errorf("elapsed %v, want %v", got, c.want)
			}
		})
	}
}

// A clock that has no monotonic reading of its own is read by time.Time's.
func TestInstants_of_a_clock_with_one_reading(t *testing.T) {
	clk := clock.NewMock()
	watch := NewStopwatch(clk)
	clk.Add(time.Second)
	if now := watch.Now(); now.Monotonic() != time.Second || now != (Instant{time.Second, time.Second}) {
		t.Errorf("a second later it is %v", now)
	}
}

func TestInstants_that_are_earlier(t *testing.T) {
	a, b := Instant{5 * ms, 9 * ms}, Instant{7 * ms, 8 * ms}
	if got, want := a.Earlier(2*ms), (Instant{3 * ms, 7 * ms}); got != want {
		t.Errorf("2 ms before %v: %v", a, got)
	}
	for _, got := range []Instant{a.Or(b), b.Or(a)} {
		if want := (Instant{5 * ms, 8 * ms}); got != want {
			t.Errorf("the earlier of %v and %v: %v", a, b, got)
		}
	}
}

func TestSystem_clock_advances(t *testing.T) {
	watch := NewStopwatch(clock.New())
	start := watch.Now()
	for watch.Since(start) == 0 {
	}
	if got := watch.Since(start); got <= 0 || got > time.Minute {
		t.Errorf("elapsed %v right after the start", got)
	}
}
