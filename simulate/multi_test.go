package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Of an even number of masters, the first of those who want several locks had
// half, and never yielded; the other half was taken by those who wanted one lock
// each, in turns, so that none of them was ever free where the others were (seed
// 1839 of the swarm, 543, 856 and 1219 of Multis alone).
func TestMultis_and_single_locks_do_not_keep_each_other_from_a_majority(t *testing.T) {
	r, err := Run(plan.Config{Seeds: some(400), Nodes: 4, Clients: 5, Lock: plan.MultiLock, Faults: plan.Calm, Duration: time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violations[0])
	}
}
