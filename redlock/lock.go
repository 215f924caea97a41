package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// kind is all that tells one kind of lock from another: what is sent to a node,
// and what its reply means. Attempt, wait, renew, lose and release are the same
// for every kind, and know nothing of keys.
type kind interface {
	// acquire takes the lock at one node; probe does, or joins the line and
	// answers for how long the lock is still held.
	acquire(value string, ttl time.Duration) *node.Command
	probe(value string, ttl time.Duration, line node.Line) *node.Command
	extend(value string, ttl time.Duration) *node.Command
	repair(value string, ttl time.Duration) *node.Command
	// release deletes what value holds, and wakes the first in line if told so.
	release(value string, ttl time.Duration, wake wakeup) *node.Command

	// taken reads the reply to acquire, probe and repair, extended that to
	// extend.
	taken(node.Reply) quorum.Vote
	extended(node.Reply) quorum.Vote
	// absent reports whether a reply to extend or release says that the node
	// has no key at all.
	absent(node.Reply) bool

	// id tells the locks of a client apart; line is the key of the line of those
	// who wait.
	id() string
	line() string
}

// wakeup says whether a release is news to those who wait. The clean-up after a
// failed attempt is not: the lock has not become free.
type wakeup bool

const (
	quietly wakeup = false
	andWake wakeup = true
)

// lock is one lock of a client, of whatever kind: what all handles are made of.
type lock struct {
	client *Client
	kind   kind
	name   string
	opt    lockOptions
	err    error // what is wrong with the options; every operation returns it
}

func (c *Client) lock(name string, k kind, opts []LockOption) lock {
	lo := lockOptions{ttl: c.opt.ttl}
	for _, opt := range opts {
		if opt != nil {
			opt(&lo)
		}
	}
	return lock{client: c, kind: k, name: name, opt: lo, err: c.opt.checkLock(name, lo)}
}

// budget is how long a lease of ttl may be relied on from its first send.
func (c *Client) budget(ttl time.Duration) time.Duration {
	if c.seams.Unsafe.NoDrift {
		return ttl
	}
	return drift.Budget(ttl, c.opt.driftFactor)
}

// fail describes a failed operation by the votes of a round.
func (l *lock) fail(op string, err error, r *quorum.Round) *Error {
	e := &Error{Op: op, Name: l.name, Err: err}
	if r == nil {
		return e
	}
	nodes := l.client.panel.Nodes()
	e.Votes = make([]Vote, len(nodes))
	var few [16]quorum.Ballot // on the stack: contenders fail often
	for i, b := range r.Ballots(few[:0]) {
		e.Votes[i] = Vote{Node: nodes[i].Addr(), Vote: b.Vote, Late: b.Late}
		if b.Reply.Err != nil {
			e.Votes[i].Err = b.Reply.Err
		}
	}
	return e
}

// check refuses to start an operation that cannot end well.
func (l *lock) check(ctx context.Context, op string) error {
	switch {
	case l.err != nil:
		return l.err
	case ctx.Err() != nil:
		return &Error{Op: op, Name: l.name, Err: context.Cause(ctx)}
	case l.client.closed.Load():
		return &Error{Op: op, Name: l.name, Err: ErrClosed}
	}
	return nil
}
