package simulate

import (
	"testing"
	"time"
)

// notForgetful are the faults after which every master remembers what it was told.
var notForgetful = []Kind{Pause, Slow, Reset, CutOut, CutIn, Partition, Errors, ClientCrash, ClientPause, ClientSuspend}

func TestA_latch_counts_exactly(t *testing.T) {
	for name, faults := range map[string]Mix{"masters remember": Only(notForgetful...), "every fault": Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range []int{3, 4, 5} {
				noneBroken(t, Config{Lock: Latch, Nodes: nodes, Seeds: some(60), Duration: 20 * time.Second, Faults: faults})
			}
		})
	}
}

func TestOne_leads_and_observers_see_every_change_in_order(t *testing.T) {
	for name, faults := range map[string]Mix{"masters remember": Only(notForgetful...), "every fault": Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noneBroken(t, Config{Lock: Election, Clients: 5, Seeds: some(100), Duration: 20 * time.Second, Faults: faults})
		})
	}
}
