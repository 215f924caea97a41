package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// S47: with one wrong clock nobody gets the lock beside a holder. Without any of the checks
// somebody does.
func TestS47_one_wrong_clock_makes_no_two_holders(t *testing.T) {
	for name, c := range map[string]struct {
		guard time.Duration
		lacks weaker.Lacks
		doubt time.Duration
		from  uint64 // the first seed; in those before it nobody was found to hold the lock beside a holder
		safe  bool
	}{
		"all checks":                             {safe: true},
		"no master's clock is watched":           {guard: -1},
		"nothing is given up of validities":      {lacks: weaker.Lacks{Unnoticed: true}, from: 12000},
		"a clock that went back votes":           {doubt: 1}, // S59
		"our own clock is not compared with any": {lacks: weaker.Lacks{OwnRate: true}},
		"the clock is not read with votes":       {lacks: weaker.Lacks{VotesTime: true}}, // S2b
	} {
		seeds := 4000 // the first one in which two clients hold the lock ends the run
		if c.safe {
			seeds = 60
		}
		r, err := Run(plan.Config{Nodes: 3, Faults: plan.OneClock, ClockGuard: c.guard, Lacks: c.lacks, Unsettled: c.doubt, Seed: c.from, Seeds: seeds, FailFast: !c.safe,
			TTL: 250 * time.Millisecond, Duration: 10 * time.Second, Transport: plan.Fast, Lock: plan.PlainLock}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := r.Stats.Violations[tally.Overlap]
		t.Logf("%s: two holders in %d of %d schedules", name, n, r.Stats.Schedules)
		if (n == 0) != c.safe {
			t.Errorf("%s: two holders in %d schedules, want none %v", name, n, c.safe)
		}
	}
}
