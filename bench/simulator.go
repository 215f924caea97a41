package bench

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/quorumlock/quorumlock/simulate"
)

// PerCore is how many schedules the simulator runs in a second of CPU time.
const PerCore Metric = "per_core_s"

// Simulator runs schedules of five masters, three clients, a minute each, with
// mixed faults, on the production lock.
func Simulator(schedules int) Workload {
	return Workload{
		Name: "simulator", Title: fmt.Sprintf("simulate %d schedules of 5 masters, 3 clients, 60 s, mixed faults", schedules),
		Run: func(_ context.Context, t *Trial) error {
			// As redlab simulate does.
			defer debug.SetGCPercent(debug.SetGCPercent(simulate.GCPercent))
			from := t.read()
			report, err := simulate.Run(simulate.Config{Seeds: schedules}, nil)
			if err != nil {
				return err
			}
			to := t.read()
			t.cost(from, to, int64(schedules))
			t.Set(PerCore, float64(schedules)/(to.client-from.client).Seconds())
			if !report.Safe() {
				return fmt.Errorf("%d schedules were not safe", len(report.Failures))
			}
			return nil
		},
	}
}

// Simulation is the subject of Simulator.
func Simulation() Subject { return Subject{Name: "simulator"} }
