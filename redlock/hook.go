package redlock

import (
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
)

func init() {
	seam.Option = func(s seam.Seams) any {
		return Option(func(o *options) { o.seams = s })
	}
	seam.InGroup = func(name string, masters any) any {
		return Option(func(o *options) { o.group = membership{name, true, masters.(*guard.Group)} })
	}
	seam.GiveBack = func(client any) { client.(*Client).tenures.giveBack() }
	seam.SettingsOf = func(client any) seam.Settings {
		o := client.(*Client).opt
		return seam.Settings{Clock: o.clock, RestartGuard: o.restartGuard, Prefix: o.prefix}
	}
	seam.NewClient = func(nodes, opts any) (any, error) {
		c, err := newClient(nodes.([]node.Node), opts.([]Option)...)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	seam.HoldsOf = func(lease any) int { return lease.(*Lease).holdsNow() }
	seam.IsShared = func(lease any) bool { return lease.(*Lease).shared() }
	seam.AnswersOnly = func(failed any) bool { return failed.(*Error).answersOnly() }
	seam.UsageOf = func(client any) seam.Usage { return client.(*Client).usage() }
}

// usage counts what the client keeps in memory for work under way.
func (c *Client) usage() seam.Usage {
	u := seam.Usage{Timers: c.timers.Len(), Rounds: c.members.InUse()}
	leases := c.leases()
	for _, l := range leases {
		l.mu.Lock()
		u.Scopes += len(l.scopes)
		l.mu.Unlock()
	}
	u.Leases = len(leases)
	u.Queues, u.Known, u.Gone = c.queues.Usage()
	return u
}
