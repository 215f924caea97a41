package simulate

import (
	flags "flag"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// long has all schedules run: make long.
var long = flags.Bool("long", false, "run ten times as many schedules: make long")

// isLong reports whether all schedules are run, so that everything must happen in them.
func isLong() bool { return *long && slower == 1 && !testing.Short() }

// some is how many of n schedules are run.
func some(n int) int {
	share := slower
	switch {
	case testing.Short():
		share *= 25
	case !isLong():
		share *= 10
	}
	return max(1, n/share)
}

// TestNo_promise_breaks_within_the_assumptions is what all this is for.
func TestNo_promise_breaks_within_the_assumptions(t *testing.T) {
	for _, cfg := range []plan.Config{
		{Seeds: 1000, Duration: 20 * time.Second},
		{Seeds: 500, Duration: 20 * time.Second, Nodes: 3, Clients: 4},
		{Seeds: 250, Duration: 20 * time.Second, Nodes: 4, Clients: 2},
		{Seeds: 250, Duration: 60 * time.Second, Nodes: 7, TTL: 3 * time.Second},
		{Seeds: 1000, Swarm: true},
		{Seeds: 200, Swarm: true, Durable: true},
	} {
		cfg.Seeds = some(cfg.Seeds)
		r, err := Run(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Failures {
			t.Errorf("%d masters, seed %d: %v", r.Config.Nodes, f.Seed, f.Violations)
		}
		// A run in which nothing happens proves nothing.
		for _, c := range r.Stats.Sometimes() {
			swarms := c.Name == "a lease was adopted" || c.Name == "work was stopped at the end of its lease" // only in a swarm
			if c.N == 0 && isLong() && !cfg.Durable && (cfg.Swarm || !swarms) {
				t.Errorf("%d masters: never happened: %s", r.Config.Nodes, c.Name)
			}
		}
		for _, k := range r.Config.Faults.Kinds {
			if r.Stats.Faults[k] == 0 && isLong() && !cfg.Durable {
				t.Errorf("%d masters: no fault of kind %s", r.Config.Nodes, k)
			}
		}
	}
}

// TestNothing_is_left_behind_when_all_is_well looks at keys, which no fault excuses
// here.
func TestNothing_is_left_behind_when_all_is_well(t *testing.T) {
	for _, f := range calm(t).Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violations)
	}
}

// TestA_busy_lock_is_not_told_as_unreachable: attempts behind the gate, asked again of
// fewer masters than a quorum, once ended as ErrNoQuorum on a healthy network
// (seeds 3, 20 and 21). A caller whose thread stands still may get no answer in time: one in
// 8,000.
func TestA_busy_lock_is_not_told_as_unreachable(t *testing.T) {
	r := simulated(t, plan.Config{Seeds: some(1000), Duration: 20 * time.Second, Faults: plan.Calm, Clients: 5})
	if n := r.Stats.NoQuorum; n > r.Stats.Calls/2000 {
		t.Errorf("%d of %d calls found no quorum without any fault", n, r.Stats.Calls)
	}
}

func calm(t *testing.T) *Report {
	t.Helper()
	r, err := Run(plan.Config{Seeds: some(100), Duration: 20 * time.Second, Faults: plan.Calm, Clients: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEvery_kind_of_fault_changes_an_outcome takes single faults out of schedules,
// until the rest of one ends otherwise: then the fault did matter.
func TestEvery_kind_of_fault_changes_an_outcome(t *testing.T) {
	for _, kind := range plan.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			faults := plan.Only(kind)
			faults.Strict = false // clocks that are only a little wrong change hardly anything
			cfg := plan.Config{Faults: faults, Duration: 10 * time.Second}
			if err := cfg.Check(); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(200) {
				s := plan.Draw(&cfg, seed)
				if len(s.Faults) == 0 {
					continue
				}
				less := s.Clone()
				less.Faults = less.Faults[1:]
				if outcome(t, s) != outcome(t, less) {
					return
				}
			}
			t.Error("no outcome depends on it")
		})
	}
}

func outcome(t *testing.T, s *plan.Schedule) uint64 {
	t.Helper()
	r, err := run(s, options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.outcome
}

func TestInterval_is_wilsons(t *testing.T) {
	for _, c := range []struct {
		n, total int
		lo, hi   string
	}{
		{0, 0, "0.0000", "1.0000"},
		{0, 100_000, "0.0000", "0.0000"},
		{0, 100, "0.0000", "0.0370"},
		{50, 100, "0.4038", "0.5962"},
		{100, 100, "0.9630", "1.0000"},
	} {
		lo, hi := tally.Interval(c.n, c.total)
		if got := [2]string{strconv.FormatFloat(lo, 'f', 4, 64), strconv.FormatFloat(hi, 'f', 4, 64)}; got != [2]string{c.lo, c.hi} {
			t.Errorf("Interval(%d, %d) = %v, want %s to %s", c.n, c.total, got, c.lo, c.hi)
		}
	}
}

func TestHistogram_quantiles_are_within_a_sixteenth(t *testing.T) {
	var h tally.Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	for _, q := range []float64{0.001, 0.5, 0.99, 1} {
		want := time.Duration(q*1000) * time.Millisecond
		if got := h.Quantile(q); got < want || got > want+want/15 {
			t.Errorf("Quantile(%v) = %v, want %v to a sixteenth more", q, got, want)
		}
	}
}
