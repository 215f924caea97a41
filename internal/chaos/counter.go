package chaos

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// counter is the classic: all callers increase one counter, by reading it and
// writing it back. Sections are short, and all callers compete.
var counter = counting("counter", 2, simulate.PlainLock)

// fair is the same with waiters that are served in their order.
var fair = inOrderOfArrival(counting("fair", 1, simulate.FairLock, redlock.Fair()))

func inOrderOfArrival(w *Workload) *Workload {
	w.Tell = (*Report).order
	return w
}

func counting(name string, callers int, kind simulate.LockKind, opts ...redlock.MutexOption) *Workload {
	return &Workload{
		Name:      name,
		Callers:   callers,
		Locks:     []string{name},
		Capacity:  1,
		Simulated: kind,
		Turn: func(ctx context.Context, c *Caller) error {
			h := c.Lock(ctx, name, opts...)
			if h == nil {
				return nil
			}
			defer h.leave()
			return h.update(name, c.upTo(5*time.Millisecond))
		},
		Check: (*History).lostUpdates,
	}
}
