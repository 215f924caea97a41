package redlock

import (
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
)

// New is the client of nodes that a test has made; see seam.NewClient.
func New(nodes []node.Node, opts ...Option) (*Client, error) { return newClient(nodes, opts...) }

// Holds returns how often the lease is held; see seam.HoldsOf.
func (l *Lease) Holds() int { return l.holdsNow() }

// Shared reports whether others may hold the lock at the same time, for reading.
func (l *Lease) Shared() bool { return l.shared() }

// Options makes one option of several, for every kind of lock.
func Options(opts ...LockOption) LockOption {
	return everyLock{change: func(o *lockOptions) { applyAll(o, opts) }}
}

// In has the masters of a client be a group that has the names of which a map tells.
func In(c *Client, name string, masters *guard.Group) {
	c.opt.group = membership{name: name, spreads: true, masters: masters}
}

// Waiting is how many calls wait in some group.
func (g *Groups) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
