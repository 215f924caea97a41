package chaos

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate"
)

// several takes two or three of three locks at once, each of which protects a
// counter of its own.
var several = &Workload{
	Name:      "several",
	Callers:   1,
	Locks:     []string{"several-0", "several-1", "several-2"},
	Capacity:  1,
	Simulated: simulate.MultiLock,
	Turn: func(ctx context.Context, c *Caller) error {
		names := slices.Clone(c.workload.Locks)
		if i := c.rand.IntN(4); i < 3 {
			names = slices.Delete(names, i, i+1)
		}
		m := c.client.Multi(names, c.lockOptions()...)
		h := c.takeAll(ctx, names, 1, m.Lock, m.TryLock)
		if h == nil {
			return nil
		}
		defer h.leave()
		for _, name := range names {
			if err := h.update(name, c.upTo(5*time.Millisecond)); err != nil {
				return err
			}
		}
		return nil
	},
	Check: (*History).lostUpdates,
}
