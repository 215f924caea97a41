package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// Mutex is a mutual exclusion lock held by a quorum of the masters. It is a handle
// without state: two Lock calls on one Mutex exclude each other like those of two
// processes. It is safe for concurrent use.
//
// On the wire it is the lock of the Redlock specification: the key is prefix and name,
// taken with SET NX PX, deleted by comparing the value. It excludes clients of other
// libraries on the same masters, and they exclude it.
type Mutex struct {
	lock lock
}

// Mutex returns the lock of that name. Every operation of the Mutex reports options
// that are out of range, before it sends anything.
func (c *Client) Mutex(name string, opts ...MutexOption) *Mutex {
	l := lockWith(c, name, kind{}, opts)
	l.kind = c.exclusive(name, l.opt)
	l.nest = holder{c, l.kind.id}
	switch {
	case l.opt.poll != nil && l.kind.passed:
		l.values.Mark += values.Passes
	case l.opt.cached != nil:
		l.values.Mark += values.Cached
	}
	return &Mutex{l}
}

// Lock waits until the lock is acquired or ctx ends. It keeps trying while another
// client holds the lock and while no quorum can be reached. When ctx ends, the error
// says which of the two it was: errors.Is finds ctx's error, and ErrTaken or
// ErrNoQuorum.
//
// The lease's context carries the values of ctx but not its cancellation: a timeout
// for getting the lock is not a timeout for using it.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if m.lock.opt.cached != nil {
		return m.lock.acquireCached(ctx, false)
	}
	return m.lock.acquire(ctx)
}

// TryLock makes one attempt: ErrTaken when another client holds the lock, ErrNoQuorum
// when too few nodes answered. It takes at most about one node timeout, and another one if nobody
// has used the client for ten seconds. A lock that other callers always wait for is free for
// moments only, which become longer and more frequent once an attempt has met one. See Cached for
// what it waits for then.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if m.lock.opt.cached != nil {
		return m.lock.acquireCached(ctx, true)
	}
	return m.lock.try(ctx)
}

// exclusive is a plain Mutex: one string key. It has no state beside the value, so all
// callers share the claim.
type exclusive struct {
	name  string
	key   string // prefix and name
	queue wire.Queue
	fair  bool // see Fair
}

// mutexes begins the ids of mutexes.
const mutexes = "mutex:"

// exclusive is the kind of a Mutex with these options.
func (c *Client) exclusive(name string, o lockOptions) kind {
	id := mutexes + c.opt.prefix + name
	e := &exclusive{name: name, key: id[len(mutexes):], queue: wire.QueueOf(c.opt.prefix, name), fair: o.fair}
	k := kind{id: id, label: "mutex", registered: 1, passed: !o.fair, claim: func() claim { return e }}
	if o.fair {
		k.registered, k.atOnce = waiting.MostFair, true
	}
	if o.cached != nil {
		k.claim = func() claim { return cachedClaim{e} }
	}
	if o.fenced {
		e.queue = e.queue.Fenced()
		k.claim = func() claim { return &fencing{exclusive: e, tokens: newTokens(c)} }
	}
	return k
}

func (e *exclusive) Acquire(value string, ttl time.Duration) *wire.Command {
	if e.fair {
		return wire.FairAsk(e.key, e.queue, value, 0, ttl)
	}
	return wire.Acquire(e.key, value, ttl)
}

func (e *exclusive) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return wire.Ask(e.key, e.queue, value, ticket, stay)
}

func (e *exclusive) extend(value string, ttl time.Duration) *wire.Command {
	return wire.Extend(e.key, value, ttl)
}

func (e *exclusive) repair(value string, ttl time.Duration) *wire.Command {
	return wire.Repair(e.key, value, ttl)
}

func (e *exclusive) release(value string, ttl time.Duration) *wire.Command {
	return wire.Release(e.key, e.queue, value, ttl)
}

func (e *exclusive) yield(value string, d time.Duration) *wire.Command {
	return wire.Yield(e.key, e.queue, value, d)
}

// Judge is described at claim.
func (e *exclusive) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	if vote, ok := leaseVote(op, r); ok {
		return vote
	}
	refused := wire.NotSet(r)
	switch {
	case op == wire.OpCommit:
		return done{}.Judge(op, r)
	case op == wire.OpAsk:
		_, refused = wire.AskRefusal(r)
	case e.fair:
		_, refused = wire.FairRefusal(r)
	}
	return taken(wire.Granted(r), refused)
}

// taken is the vote of a reply to a command that takes a lock. A reply that neither
// grants nor refuses does not count as a vote.
func taken(granted, refused bool) quorum.Vote {
	switch {
	case granted:
		return quorum.Granted
	case refused:
		return quorum.Refused
	}
	return quorum.Failed
}

// Fair serves waiters for this lock in the order of their arrival: a waiter
// that a majority of the masters had queued before another Lock began gets the lock
// first, as long as it lives and a majority can notify it. A client without the SUBSCRIBE
// permission has no place in the queue. The masters queue the first 256 callers of each
// client, and its other callers wait behind these. A waiter that dies delays the others
// by a TTL at most.
// All clients that use the lock must have it fair: others take it whenever it is free.
func Fair() MutexOption { return fairOption{change: func(o *lockOptions) { o.fair = true }} }

// A fair lock differs from an unfair one in two ways. The first ask takes the lock
// only if it has no waiters. And every master queues a newcomer behind all waiters
// that it knows: the highest of its places at a majority becomes its ticket at all
// masters.
//
// Invariant: once a majority has queued A with its ticket, each B that begins later
// has a higher ticket, or none, at a master of that majority.

func (e *exclusive) Enqueue(value string, least int64, stay time.Duration) *wire.Command {
	return wire.FairAsk(e.key, e.queue, value, least, stay)
}

func (f *fencing) Enqueue(value string, least int64, stay time.Duration) *wire.Command {
	return wire.FencedFairAsk(f.key, f.queue, value, least, stay, f.proposal())
}
