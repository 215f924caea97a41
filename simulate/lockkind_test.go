package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// TestNo_promise_breaks_for_any_kind_of_lock is TestNo_promise_breaks_within_the_assumptions
// for each kind alone.
func TestNo_promise_breaks_for_any_kind_of_lock(t *testing.T) {
	for _, kind := range plan.LockKinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			noneBroken(t, plan.Config{Seeds: some(100), Swarm: true, Lock: kind})
		})
	}
}

// noneBroken runs schedules in which no promise may break, and something happens.
func noneBroken(t *testing.T, cfg plan.Config) {
	t.Helper()
	r := simulated(t, cfg)
	for _, f := range r.Failures {
		t.Errorf("%d masters, seed %d: %v", cfg.Nodes, f.Seed, f.Violations)
	}
	if r.Stats.Acquisitions == 0 {
		t.Error("nobody ever got the lock")
	}
}

// Of an even number of masters, fewer than a majority have answered when it is
// clear that the lock is taken. A fair waiter has its place all the same.
func TestFair_waiters_stand_in_line_also_at_an_even_number_of_masters(t *testing.T) {
	for _, nodes := range []int{4, 5} {
		r, err := Run(plan.Config{Seeds: 4, Nodes: nodes, Lock: plan.FairLock, Faults: plan.Calm, Duration: 20 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Stats.InLine; n < 50 {
			t.Errorf("%d masters: only %d times somebody was queued when another call began", nodes, n)
		}
	}
}

// A master that answers late says with each answer that messages may have been
// missed. Several waiters of one client, each with an ask of its own, asked it
// again for every answer, twice as much each time, without end.
func TestA_master_that_answers_late_is_not_asked_ever_more(t *testing.T) {
	r, err := Run(plan.Config{Seed: 1078, Seeds: 1, Swarm: true, Lock: plan.ReadWriteLock}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Stats.Events; n > 200_000 {
		t.Errorf("%d events in a minute", n)
	}
}
