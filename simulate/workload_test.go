package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// notForgetful are the faults after which every master remembers what it was told.
var notForgetful = []plan.Kind{plan.Pause, plan.Slow, plan.Reset, plan.CutOut, plan.CutIn, plan.Partition, plan.Errors, plan.ClientCrash, plan.ClientPause, plan.ClientSuspend}

func TestA_latch_counts_exactly(t *testing.T) {
	for name, faults := range map[string]plan.Mix{"masters remember": plan.Only(notForgetful...), "every fault": plan.Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range []int{3, 4, 5} {
				noneBroken(t, plan.Config{Lock: plan.Latch, Nodes: nodes, Seeds: some(60), Duration: 20 * time.Second, Faults: faults})
			}
		})
	}
}

func TestOne_leads_and_observers_see_every_change_in_order(t *testing.T) {
	for name, faults := range map[string]plan.Mix{"masters remember": plan.Only(notForgetful...), "every fault": plan.Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noneBroken(t, plan.Config{Lock: plan.Election, Clients: 5, Seeds: some(100), Duration: 20 * time.Second, Faults: faults})
		})
	}
}
