package simulate

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// A client that crashed while it held a lock goes on with the lease when it is back:
// nobody else has the lock as well, and a fenced one keeps its token.
func TestWho_crashed_takes_its_lease_up_again(t *testing.T) {
	for _, kind := range []plan.LockKind{plan.PlainLock, plan.FencedMultiLock, plan.ReadWriteLock, plan.FencedSemaphoreLock} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := simulated(t, plan.Config{Swarm: true, Lock: kind, Seeds: max(15, some(200)), Faults: plan.Only(plan.ClientCrash, plan.Flush, plan.Slow)})
			for _, f := range r.Failures {
				t.Errorf("seed %d: %v", f.Seed, f.Violations)
			}
			if r.Stats.Adopted == 0 {
				t.Error("no lease was adopted")
			}
		})
	}
}
