package simulate

import (
	"sync/atomic"
	"testing"
	"time"
)

// A client closes while it holds one lock and waits for another: both calls end, and no
// master keeps anything of it.
func TestA_client_that_closes_leaves_nothing(t *testing.T) {
	var drawn atomic.Int64 // workers draw side by side
	r := simulated(t, Config{Seeds: 20, Clients: 3, Duration: 5 * time.Second, Faults: Calm,
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			drawn.Add(1)
			return []Fault{{Kind: ClientCrash, Closes: true, Client: 0, At: 2*time.Second + dice.between(0, time.Second), For: time.Second}}, [][]Action{
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
	if want := 4 * int(drawn.Load()); r.Stats.closed != want { // one in the middle, and all three at the end
		t.Errorf("%d clients have closed, want %d", r.Stats.closed, want)
	}
}
