package redistest_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// slack is how far a loaded machine may be late in reading two clocks.
const slack = 2 * time.Second

func TestClock_step_forward_expires_keys(t *testing.T) {
	s := redistest.Start(t, redistest.Faketime())
	set(t, s, "lock", "value", "PX", 60_000)

	s.StepClock(2 * time.Minute)

	wantAbsent(t, s, "lock")
	wantAhead(t, s, 2*time.Minute)
}

func TestClock_step_back_lengthens_keys(t *testing.T) {
	s := redistest.Start(t, redistest.Faketime())
	set(t, s, "lock", "value", "PX", 60_000)

	s.StepClock(-5 * time.Minute)

	left, err := redis.Int64(s.Do("PTTL", "lock"))
	if got, want := time.Duration(left)*time.Millisecond, 6*time.Minute; err != nil || got > want || got < want-slack {
		t.Errorf("a 60 s key lives for %v, %v, want %v", got, err, want)
	}
}

func TestClock_steps_add_up_and_survive_a_restart(t *testing.T) {
	s := redistest.Start(t, redistest.Faketime())
	s.StepClock(time.Hour)
	s.StepClock(-10 * time.Minute)
	wantAhead(t, s, 50*time.Minute)
	s.Restart()
	wantAhead(t, s, 50*time.Minute)
}

func TestClock_rate_changes_without_a_step(t *testing.T) {
	s := redistest.Start(t, redistest.Faketime())
	wantAhead(t, s, 0)

	s.SetClockRate(0)
	frozen := s.Time()
	if again := s.Time(); again != frozen {
		t.Errorf("frozen clock went from %v to %v", frozen, again)
	}
	wantAhead(t, s, 0)

	fast := time.Now()
	s.SetClockRate(100)
	eventually(t, "the clock is a minute ahead", func() bool { return ahead(s) > time.Minute })
	if took := time.Since(fast); took < 500*time.Millisecond {
		t.Errorf("a minute at rate 100 took %v, want 0.6 s", took)
	}

	s.SetClockRate(1)
	gained := ahead(s)
	s.Restart()
	wantAhead(t, s, gained)
}

func TestClock_rate_is_checked(t *testing.T) {
	tb := &failing{}
	s := redistest.Start(tb, redistest.Faketime())
	defer tb.finish()
	defer func() {
		if recover() != errFatal {
			t.Error("SetClockRate(-1) did not stop the test")
		}
		wantAhead(t, s, 0)
	}()
	s.SetClockRate(-1)
}

func ahead(s *redistest.Server) time.Duration { return time.Until(s.Time()) }

func wantAhead(t *testing.T, s *redistest.Server, want time.Duration) {
	t.Helper()
	if got := ahead(s); (got - want).Abs() > slack {
		t.Errorf("the server's clock is ahead by %v, want %v", got, want)
	}
}
