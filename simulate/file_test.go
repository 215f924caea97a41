package simulate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

func TestA_saved_schedule_runs_as_it_did(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		// Given a schedule that was run and saved.
		cfg := plan.Config{Swarm: true, Duration: 5 * time.Second}
		if seed >= 5 {
			cfg.Lock = plan.SemaphoreLock // of several names, which are taken when all is well again
		}
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		s := plan.Draw(&cfg, seed)
		before, err := RunSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		file, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		// When it is read and run.
		again, err := plan.ReadSchedule(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		after, err := RunSchedule(again)
		if err != nil {
			t.Fatal(err)
		}
		// Then it is the same run, and it can be looked at.
		if before.Hash != after.Hash {
			t.Errorf("seed %d: hash %x, and %x from the file", seed, before.Hash, after.Hash)
		}
		if _, err := after.Replay(again); err != nil {
			t.Error(err)
		}
	}
}

func TestA_schedule_that_makes_no_sense_is_refused(t *testing.T) {
	for _, file := range []string{
		`nonsense`,
		`{"world":{"nodes":3,"clients":1,"ttl":1000000000},"faults":[{"kind":"pause","node":3}]}`,
		`{"world":{"nodes":3,"clients":1,"ttl":1}}`,
	} {
		if _, err := plan.ReadSchedule(strings.NewReader(file)); err == nil {
			t.Errorf("%s: was read", file)
		}
	}
}

// A verdict without a failure has no schedule in it, and that is said.
func TestA_verdict_without_a_failure_is_no_schedule(t *testing.T) {
	r, err := Run(plan.Config{Seeds: 1, Duration: time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := r.WriteJSON(&file, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.ReadSchedule(&file); err == nil || !strings.Contains(err.Error(), "no schedule failed") {
		t.Errorf("%v; want that no schedule failed", err)
	}
}
