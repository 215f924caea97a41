package explore

import (
	"slices"
	"strings"
	"testing"
)

// quick are the worlds that take no time worth speaking of.
var quick = []string{
	"try", "suspend", "hold", "late-extend", "reset", "forget",
	"fenced-ahead", "fair-try", "multi-try", "semaphore-try", "read-write-try", "downgrade",
}

func TestNo_promise_breaks_in_any_order(t *testing.T) {
	t.Parallel()
	for _, name := range quick {
		e := Find(name).Explore(Config{Runs: 50_000})
		if e.Violation != nil {
			t.Errorf("%s: %s: %s\n%s", name, e.Violation.Kind, e.Violation.What, strings.Join(e.Told, "\n"))
		}
		if !e.Complete {
			t.Errorf("%s: not every order was tried in %d runs", name, e.Runs)
		}
	}
}

// TestEvery_protection_is_missed_in_some_order: what cannot find a mistake proves
// nothing.
func TestEvery_protection_is_missed_in_some_order(t *testing.T) {
	for _, b := range KnownBads {
		if !slices.Contains(quick, b.world) {
			continue
		}
		e := b.World().Explore(Config{Runs: 10_000})
		if e.Violation == nil {
			t.Errorf("%s: nothing broke in %d runs of %q", b.Name, e.Runs, b.world)
		}
	}
}

func TestAn_exploration_ends_when_it_is_interrupted(t *testing.T) {
	interrupt := make(chan struct{})
	close(interrupt)
	e := Find("hold").Explore(Config{Interrupt: interrupt})
	if e.Runs != 1 || e.Complete {
		t.Errorf("%d runs, complete: %v; want one run, which is not all", e.Runs, e.Complete)
	}
}

func TestA_bound_leaves_orders_out(t *testing.T) {
	t.Parallel()
	all := Find("hold").Explore(Config{})
	few := Find("hold").Explore(Config{Bound: 1})
	if few.Complete || few.Runs >= all.Runs || few.Bounded == 0 {
		t.Errorf("with a bound of 1: %+v, without: %+v", few.Stats, all.Stats)
	}
}

func TestAn_exploration_is_the_same_again(t *testing.T) {
	a := Find("reset").Explore(Config{})
	b := Find("reset").Explore(Config{})
	if a.Stats != b.Stats {
		t.Errorf("%+v, then %+v", a.Stats, b.Stats)
	}
}
