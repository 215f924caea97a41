package simulate

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// A client closes while it holds one lock and waits for another: both calls end, and no
// master keeps anything of it.
func TestA_client_that_closes_leaves_nothing(t *testing.T) {
	var drawn atomic.Int64 // workers draw side by side
	r := simulated(t, plan.Config{Seeds: 20, Clients: 3, Duration: 5 * time.Second, Faults: plan.Calm,
		Script: func(dice *world.Dice, cfg *plan.Config) ([]plan.Fault, [][]plan.Action) {
			drawn.Add(1)
			return []plan.Fault{{Kind: plan.ClientCrash, Closes: true, Client: 0, At: 2*time.Second + dice.Between(0, time.Second), For: time.Second}}, [][]plan.Action{
				{{Think: time.Second, Patience: time.Second, Hold: 4 * time.Second, Renew: true, Lock: "a"}},
				{{Patience: time.Second, Hold: 4 * time.Second, Renew: true, Lock: "b"}},
				nil,
				{{Think: 1500 * time.Millisecond, Patience: 3 * time.Second, Hold: time.Second, Lock: "b"}}, // of client 1, too
			}
		},
	})
	for _, f := range r.Failures {
		t.Error(f.Violations)
	}
	if want := 4 * int(drawn.Load()); r.Stats.Closed != want { // one in the middle, and all three at the end
		t.Errorf("%d clients have closed, want %d", r.Stats.Closed, want)
	}
}
