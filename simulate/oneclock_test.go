package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// oneClock plans three masters, one of them with a wrong clock.
func oneClock(seeds int) plan.Config {
	return plan.Config{Nodes: 3, Faults: plan.OneClock, Seeds: seeds, TTL: 250 * time.Millisecond,
		Duration: 10 * time.Second, Transport: plan.Fast, Lock: plan.PlainLock}
}

// twoHolders counts the schedules in which two clients held the lock.
func twoHolders(t *testing.T, cfg plan.Config) int {
	t.Helper()
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := r.Stats.Violations[tally.Overlap]
	t.Logf("two holders in %d of %d schedules", n, r.Stats.Schedules)
	return n
}

func TestS47_one_wrong_clock_makes_no_two_holders(t *testing.T) {
	if n := twoHolders(t, oneClock(60)); n != 0 {
		t.Errorf("two holders in %d schedules", n)
	}
}

// Without any one of the checks somebody gets the lock beside a holder.
func TestEvery_wrong_rule_of_clocks_makes_two_holders(t *testing.T) {
	for name, change := range map[string]func(*plan.Config){
		"no master's clock is watched": func(c *plan.Config) { c.ClockGuard = -1 },
		"nothing is given up of validities": func(c *plan.Config) {
			c.Lacks = weaker.Lacks{Unnoticed: true}
			c.Seed = 400 // of some thousand schedules one makes two holders
		},
		"a clock that went back votes":           func(c *plan.Config) { c.Unsettled = 1 }, // S59
		"our own clock is not compared with any": func(c *plan.Config) { c.Lacks = weaker.Lacks{OwnRate: true} },
		"the clock is not read with votes":       func(c *plan.Config) { c.Lacks = weaker.Lacks{VotesTime: true} }, // S2b
	} {
		t.Run(name, func(t *testing.T) {
			cfg := oneClock(4000)
			cfg.FailFast = true
			change(&cfg)
			if twoHolders(t, cfg) == 0 {
				t.Error("no two holders")
			}
		})
	}
}
