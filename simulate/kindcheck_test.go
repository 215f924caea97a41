package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// A report says what was checked for the kind of lock that it is about, and how often.
func TestA_report_says_what_was_checked_for_the_kind(t *testing.T) {
	t.Parallel()
	for kind, own := range map[plan.LockKind][]tally.KindCheck{
		plan.FencedLock:          {tally.TokenRises},
		plan.FairLock:            {tally.NobodyPassed},
		plan.MultiLock:           {tally.WholeSets, tally.WaitsForOthers},
		plan.ReadWriteLock:       {tally.WriterAlone},
		plan.FencedSemaphoreLock: {tally.TokenRises, tally.PermitsFit},
		plan.ReentrantLock:       {tally.LockedAgain},
		plan.Latch:               {tally.CountsOnlySent, tally.CountsAll, tally.LetThroughInTime, tally.OpensAtLast},
		plan.Election: {tally.TokenRises, tally.LeadersInOrder, tally.LeaderSaid, tally.LeaderAgreed,
			tally.ChosenLeads, tally.TransferEnds, tally.RequestReaches, tally.RequestForHolder},
	} {
		t.Run(string(kind), func(t *testing.T) {
			cfg := plan.Config{Swarm: true, Lock: kind, Seeds: 5}
			if kind == plan.Election {
				cfg.Seeds = 30 // half of them transfer, and few of those while all is well
			}
			r := simulated(t, cfg)
			var text strings.Builder
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			var checks []tally.KindCheck
			for _, c := range r.Stats.KindChecks() {
				checks = append(checks, c.Check)
				if c.Made == 0 || c.Failed > 0 {
					t.Errorf("%s: made %d times, failed %d times", c.Check, c.Made, c.Failed)
				}
				line := strings.Fields(fmt.Sprintf("%s %s 0", c.Check, words.Thousands(c.Made)))
				if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), strings.Join(line, " ")) {
					t.Errorf("the report does not say %q:\n%s", line, &text)
				}
			}
			if !slices.Equal(checks, own) {
				t.Errorf("checked %q, want %q", checks, own)
			}
		})
	}
}

// A check of a kind that fails is counted, and shown beside the promise that broke.
func TestA_report_counts_the_checks_of_the_kind_that_failed(t *testing.T) {
	t.Parallel()
	over := Find("over-admitting-semaphore")
	crowded, ok := over.Without()
	if !ok {
		t.Fatal("nothing protects from it")
	}
	crowded.Seed = 79 // shows it
	for check, cfg := range map[tally.KindCheck]plan.Config{
		tally.PermitsFit:     crowded,
		tally.CountsOnlySent: {Swarm: true, Lock: plan.Latch, Variant: masters.CountsResends},
	} {
		failed := false
		for cfg.Seeds = 2; cfg.Seed < 500 && !failed; cfg.Seed += 2 {
			r := simulated(t, cfg)
			failed = !r.Safe() && r.Stats.Failed[check] > 0
		}
		if !failed {
			t.Errorf("%s: never failed", check)
		}
		t.Logf("%s: failed before seed %d", check, cfg.Seed)
	}
}
