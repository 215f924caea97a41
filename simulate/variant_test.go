package simulate

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Each rule of the protocol is there for something: where the masters do otherwise, a
// promise breaks, and the simulator sees it.
func TestEvery_wrong_rule_is_found(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			r := simulated(t, plan.Config{Swarm: true, Lock: v.lock, Variant: v.name, Nodes: v.nodes, Seed: v.seed, Seeds: 1000, FailFast: true})
			if r.Safe() {
				t.Fatalf("not noticed in %d schedules: %s", r.Stats.Schedules, v.about)
			}
			t.Logf("%v, in seed %d", r.Failures[0].Violations[0], r.Failures[0].Seed)
		})
	}
}
