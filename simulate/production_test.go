package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

func TestProduction_transport_keeps_the_promises(t *testing.T) {
	r := simulated(t, plan.Config{Seeds: 24, Seed: 1, Transport: plan.Production})
	if !r.Safe() {
		t.Fatalf("seed %d: %v", r.Failures[0].Seed, r.Failures[0].Violations)
	}
	if r.Stats.Acquisitions == 0 {
		t.Error("nobody got the lock")
	}
	t.Logf("%d schedules in %v: %d acquisitions, %d renewals", r.Stats.Schedules, r.Took.Round(time.Millisecond), r.Stats.Acquisitions, r.Stats.Renewals)
}

func TestA_seed_always_gives_the_same_run_over_the_production_transport(t *testing.T) {
	cfg := plan.Config{Seeds: 12, Seed: 1, Duration: 60 * time.Second / slower, Transport: plan.Production}
	first, second := simulated(t, cfg), simulated(t, cfg)
	if first.Hash != second.Hash {
		t.Errorf("the same seeds gave %x and %x", first.Hash, second.Hash)
	}
}

func simulated(t *testing.T, cfg plan.Config) *Report {
	t.Helper()
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
