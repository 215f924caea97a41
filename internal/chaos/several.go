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
var several = multi("several", simulate.MultiLock, (*History).lostUpdates, func(ctx context.Context, h *Hold) error {
	for _, name := range h.locks {
		if err := h.update(name, h.caller.upTo(5*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
})

// chain is the same with one fencing token for all of them, and with holders that
// never look at their lease.
var chain = multi("chain", simulate.FencedMultiLock, (*History).misfenced, func(ctx context.Context, h *Hold) error {
	return h.work(ctx, h.caller.upTo(h.caller.ttl/4), h.locks...)
}, redlock.Fenced())

func multi(name string, kind simulate.LockKind, check func(*History, string) []Finding, use func(context.Context, *Hold) error, opts ...redlock.MultiOption) *Workload {
	return &Workload{
		Name: name, Callers: 1, Locks: []string{name + "-0", name + "-1", name + "-2"}, Capacity: 1, Simulated: kind, Check: check,
		Turn: func(ctx context.Context, c *Caller) error {
			return c.withSome(ctx, func(h *Hold) error { return use(ctx, h) }, opts...)
		},
	}
}

// withSome uses two or three of the workload's three locks, if it gets them.
func (c *Caller) withSome(ctx context.Context, use func(h *Hold) error, opts ...redlock.MultiOption) error {
	names := slices.Clone(c.workload.Locks)
	if i := c.rand.IntN(4); i < 3 {
		names = slices.Delete(names, i, i+1)
	}
	m := c.client.Multi(names, append(slices.Clip(opts), c.lockOption())...)
	h := c.takeAll(ctx, names, 1, m.Lock, m.TryLock)
	if h == nil {
		return nil
	}
	defer h.leave()
	return use(h)
}
