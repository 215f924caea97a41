package chaos

import (
	"context"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// elected is led by one at a time, who says things and works by its token.
var elected = &Workload{
	Name:      "elected",
	Callers:   1,
	Locks:     []string{"elected"},
	Capacity:  1,
	Simulated: simulate.FencedLock,
	Turn: func(ctx context.Context, c *Caller) error {
		name := c.anyLock()
		election := c.client.Election(name, c.lockOptions())
		campaign := func(ctx context.Context) (*redlock.Lease, error) { return election.Campaign(ctx, c.id) }
		h := c.take(ctx, name, 1, campaign, campaign)
		if h == nil {
			return nil
		}
		defer h.leave()
		election.Proclaim(ctx, h.lease, c.nextID()) // or not: the masters may be away
		return h.work(ctx, c.upTo(c.ttl/2), name)
	},
	Check: (*History).misfenced,
}
