package simulate

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

func TestMinimal_keeps_what_matters(t *testing.T) {
	// Fails with 3 and 17 together, whatever else there is.
	got := minimal(40, func(keep []int) bool { return slices.Contains(keep, 3) && slices.Contains(keep, 17) })
	if !slices.Equal(got, []int{3, 17}) {
		t.Errorf("minimal kept %v, want [3 17]", got)
	}
	if got := minimal(5, func([]int) bool { return true }); len(got) != 0 {
		t.Errorf("minimal kept %v of what fails without anything", got)
	}
}

func TestA_shrunk_schedule_still_fails_and_is_minimal(t *testing.T) {
	t.Parallel()
	// Given a schedule in which a suspended client relies on its monotonic clock.
	r, err := Run(plan.Config{Seeds: 32, Duration: 20 * time.Second, Faults: plan.Only(plan.ClientSuspend, plan.Reset, plan.Pause), Lacks: weaker.Lacks{WallClock: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) == 0 {
		t.Fatal("no schedule failed")
	}
	f := r.Failures[0]

	// When it is shrunk.
	before := plan.Draw(&r.Config, f.Seed)
	s, err := r.Shrink(f)
	if err != nil {
		t.Fatal(err)
	}

	// Then it fails in the same way, and not if anything is taken away.
	sh := &shrinker{kind: f.Violations[0].Kind}
	if !sh.breaks(s) {
		t.Fatalf("the shrunk schedule does not fail:\n%v", s)
	}
	for i := range s.Faults {
		c := s.Clone()
		c.Faults = slices.Delete(c.Faults, i, i+1)
		if sh.breaks(c) {
			t.Errorf("still fails without %v", s.Faults[i])
		}
	}
	for i := range s.Actions {
		for j := range s.Actions[i] {
			c := s.Clone()
			c.Actions[i] = slices.Delete(c.Actions[i], j, j+1)
			if sh.breaks(c) {
				t.Errorf("still fails without action %d of %s", j, plan.ClientName(i))
			}
		}
	}
	t.Logf("from %d to %d entries:\n%v", before.Size(), s.Size(), s)
	if s.Size() > 8 {
		t.Errorf("%d entries are left:\n%v", s.Size(), s)
	}
}
