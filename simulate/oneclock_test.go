package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// S47: with one wrong clock nobody gets the lock beside a holder. Where the masters' clocks
// are not watched, somebody does.
func TestS47_one_wrong_clock_makes_no_two_holders(t *testing.T) {
	for name, c := range map[string]struct {
		guard time.Duration
		seeds int
		safe  bool
	}{"watched": {0, 40, true}, "not watched": {-1, 40, false}} {
		r, err := Run(plan.Config{Nodes: 3, Faults: plan.OneClock, ClockGuard: c.guard, Seeds: c.seeds, Duration: 20 * time.Second, Transport: plan.Fast, Lock: plan.PlainLock}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := r.Stats.Violations[tally.Overlap]
		t.Logf("%s: two holders in %d of %d schedules", name, n, c.seeds)
		if (n == 0) != c.safe {
			t.Errorf("%s: two holders in %d of %d schedules, want none %v", name, n, c.seeds, c.safe)
		}
	}
}
