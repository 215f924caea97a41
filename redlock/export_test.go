package redlock

import "github.com/quorumlock/quorumlock/node"

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
