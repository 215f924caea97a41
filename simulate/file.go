package simulate

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// RunSchedule runs one schedule, as read from a file, and reports on it.
func RunSchedule(s *plan.Schedule) (*Report, error) {
	began := time.Now() // for the speed in the report; no run reads it
	res, err := run(s, options{})
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	r := &Report{Config: *s.Config, Stats: res.stats, Hash: res.hash, Took: time.Since(began)}
	if len(res.violations) > 0 {
		r.Failures = []Failure{{Seed: s.Seed, Violations: res.violations}}
	}
	return r, nil
}
