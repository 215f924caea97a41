package chaos

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/simulate"
)

// register is held for long: past renewals, past faults, often until it is
// lost. Its holders write it again and again, and the history of every register
// must be one of atomic updates.
var register = &Workload{
	Name:      "register",
	Callers:   2,
	Locks:     []string{"register-0", "register-1", "register-2"},
	Capacity:  1,
	Simulated: simulate.PlainLock,
	Turn: func(ctx context.Context, c *Caller) error {
		name := c.anyLock()
		h := c.Lock(ctx, name, c.lockOption())
		if h == nil {
			return nil
		}
		defer h.leave()
		for end := now() + c.upTo(3*c.ttl); now() < end && h.valid() && ctx.Err() == nil; {
			if err := h.update(name, c.upTo(50*time.Millisecond)); err != nil {
				return err
			}
		}
		return nil
	},
	Check: func(h *History, name string) []Finding {
		return append(h.lostUpdates(name), h.linearizable(name)...)
	},
}
