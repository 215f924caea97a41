package simulate

import (
	"slices"
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// atMost is within how many seeds a violation must be found.
const atMost = 10_000

// TestCatalogue_of_known_failures runs every scenario: without its protection the promise breaks,
// and in the same schedules it holds with it.
func TestCatalogue_of_known_failures(t *testing.T) {
	for _, s := range Catalogue {
		t.Run(s.Row+" "+s.Name, func(t *testing.T) {
			t.Parallel()
			seeds := some(64)
			if without, ok := s.Without(); ok {
				seeds = max(seeds, untilBroken(t, without, s.Breaks))
			} else if s.Limit != "" {
				untilBroken(t, s.Config(), s.Breaks)
				return
			}
			cfg := s.Config()
			cfg.Seeds = seeds
			r, err := Run(cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Failures {
				t.Errorf("seed %d breaks although protected by %q: %v", f.Seed, s.Against, f.Violations)
			}
			if r.Stats.Acquisitions == 0 {
				t.Error("nobody ever got the lock")
			}
		})
	}
}

// untilBroken returns how many seeds it took to break the promise.
func untilBroken(t *testing.T, cfg plan.Config, breaks tally.ViolationKind) int {
	t.Helper()
	n := brokenWithin(t, cfg, breaks, atMost)
	if n == 0 {
		t.Fatalf("no %s within %d seeds", breaks, atMost)
	}
	return n
}

// brokenWithin is untilBroken that returns zero if none of the seeds breaks it.
// A schedule ends where it does.
func brokenWithin(t *testing.T, cfg plan.Config, breaks tally.ViolationKind, seeds int) int {
	t.Helper()
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	for seed := range seeds {
		r, err := run(plan.Draw(&cfg, uint64(seed)), options{stopOn: breaks})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.violations, func(v tally.Violation) bool { return v.Kind == breaks }) {
			return seed + 1
		}
	}
	return 0
}

func TestCatalogue_has_each_name_once(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Catalogue {
		if seen[s.Name] || seen[s.Row] {
			t.Errorf("%s %s is listed twice", s.Row, s.Name)
		}
		seen[s.Name], seen[s.Row] = true, true
		if Find(s.Name) != s || Find(s.Row) != s {
			t.Errorf("Find does not find %s by its name or row %s", s.Name, s.Row)
		}
		if s.About == "" || s.Breaks == "" {
			t.Errorf("%s does not say what it is about", s.Name)
		}
		if (s.Against == "") != (s.without == nil) {
			t.Errorf("%s: a protection has a name, and only then", s.Name)
		}
	}
}
