package simulate

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// standstill is for how long, by the clock of the machine, one event of a schedule may
// go on. All of a schedule takes a fiftieth of a second.
const standstill = 30 * time.Second

// watched runs a schedule, and gives it up if it stands still: code that waits for
// something outside of the simulation is never continued.
func watch(s *plan.Schedule, opt options, patience time.Duration) (*result, error) {
	type outcome struct {
		*result
		error
	}
	opt.beat = new(atomic.Uint64)
	over := make(chan outcome, 1)
	go func() {
		res, err := run(s, opt)
		over <- outcome{res, err}
	}()
	look := time.NewTicker(patience)
	defer look.Stop()
	for before := opt.beat.Load(); ; {
		select {
		case o := <-over:
			return o.result, o.error
		case <-look.C:
			beat := opt.beat.Load()
			if beat == before {
				return nil, fmt.Errorf("seed %d stands still: some code waits for what is outside of the simulation. In a workload, wait by Process.Wait, and by its Clock", s.Seed)
			}
			before = beat
		}
	}
}
