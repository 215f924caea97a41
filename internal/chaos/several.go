package chaos

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// several takes two or three of three locks together, each of which protects a
// counter of its own.
var several = &Workload{
	Name:      "several",
	Callers:   1,
	Locks:     []string{"several-0", "several-1", "several-2"},
	Capacity:  1,
	Simulated: simulate.MultiLock,
	Turn: func(ctx context.Context, c *Caller) error {
		return c.withSome(ctx, func(h *Hold) error {
			for _, name := range h.locks {
				if err := h.update(name, c.upTo(5*time.Millisecond)); err != nil {
					return err
				}
			}
			return nil
		})
	},
	Check: (*History).lostUpdates,
}

// chain is the same with one fencing token for all of them, and with holders that
// never look at their lease.
var chain = &Workload{
	Name:      "chain",
	Callers:   1,
	Locks:     []string{"chain-0", "chain-1", "chain-2"},
	Capacity:  1,
	Simulated: simulate.FencedMultiLock,
	Turn: func(ctx context.Context, c *Caller) error {
		return c.withSome(ctx, func(h *Hold) error { return h.work(ctx, c.upTo(c.ttl/4), h.locks...) }, redlock.Fenced())
	},
	Check: (*History).misfenced,
}

// withSome uses two or three of the workload's three locks, if it gets them.
func (c *Caller) withSome(ctx context.Context, use func(h *Hold) error, opts ...redlock.MultiOption) error {
	names := slices.Clone(c.workload.Locks)
	if i := c.rand.IntN(4); i < 3 {
		names = slices.Delete(names, i, i+1)
	}
	m := c.client.Multi(names, append(slices.Clip(opts), c.lockOptions())...)
	h := c.takeAll(ctx, names, 1, m.Lock, m.TryLock)
	if h == nil {
		return nil
	}
	defer h.leave()
	return use(h)
}
