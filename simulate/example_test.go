package simulate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// A workload of one's own: every client adds to a number under the lock, while
// masters restart empty and clients stand still.
func ExampleRun() {
	report, err := simulate.Run(simulate.Config{
		Seeds:    20,
		Duration: 10 * time.Second,
		Faults:   simulate.Only(simulate.RestartEmpty, simulate.ClientPause),
	}, func(p *simulate.Process, c *redlock.Client) {
		ctx := context.Background()
		for !p.Over() {
			lease, err := c.Mutex("counter").Lock(ctx)
			if err != nil {
				return
			}
			letGo := p.Holding(lease)

			version := p.Storage().Read()
			p.Sleep(lease.Context(), 50*time.Millisecond) // the work; ends early when the lease does
			if lease.Valid() {
				p.Storage().Write(version, lease.Token())
			}

			letGo()
			lease.Unlock(ctx)
			p.Sleep(ctx, 20*time.Millisecond)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("schedules:", report.Stats.Schedules)
	fmt.Println("safe:", report.Safe())
	fmt.Println("the lock was taken at least 1,000 times:", report.Stats.Acquisitions > 1000)
	// Output:
	// schedules: 20
	// safe: true
	// the lock was taken at least 1,000 times: true
}
