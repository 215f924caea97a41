package chaos

import (
	"context"
	"time"
)

// counter is the classic: everybody increases one counter, by reading it and
// writing it back. Sections are short and everybody wants in.
var counter = &Workload{
	Name:     "counter",
	Callers:  2,
	Locks:    []string{"counter"},
	Capacity: 1,
	Turn: func(ctx context.Context, c *Caller) error {
		h := c.Lock(ctx, c.client.Mutex("counter"))
		if h == nil {
			return nil
		}
		defer h.leave()
		return h.update("counter", c.upTo(5*time.Millisecond))
	},
	Check: func(h *History) []Finding { return h.lostUpdates("counter") },
}
