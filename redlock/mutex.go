package redlock

import (
	"context"
	"slices"
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

// AtLeast keeps the lock from all clients for d, however early it is unlocked: a short job that
// every instance starts at the same minute runs once. An Unlock before that ends the lease, but
// leaves the lock at the masters for the rest. So do Close, a loss, and the crash of the holder,
// whose lock lasts for the TTL or d, whichever is longer. Waiters learn when the lock ends. The
// error of a TryLock says for how long at most the lock is kept: Error.Remaining.
//
// d counts from when the masters had granted the lock and were asked to keep it, before Lock
// returns, which takes one round trip more. Each master measures d by its own clock, and no
// clock of a client matters: less than d may pass only by as much as the masters' clocks run
// fast. ForceUnlock frees the lock earlier. A lease that was adopted keeps the end that the first
// holder asked for. Of nested calls the option of the first Lock counts, and the last Unlock; see
// Reentrant.
//
// d is more than the node timeout, and at most the restart guard: a master that lost its memory
// must not grant the lock meanwhile. The restart guard is the client's TTL, unless
// WithRestartGuard makes it longer. d is at most MaxHold. Clients without AtLeast on the same lock
// respect it.
func AtLeast(d time.Duration) MutexOption {
	return atLeastOption{change: func(o *lockOptions) { o.atLeast = &d }}
}

// atLeastOption fits a Mutex but not a Multi: the masters keep one string key.
type atLeastOption struct {
	change
	fitsMutex
}

// To keep a lock is to store, beside its key, for which value the key stays, and until when by
// the master's own clock (keep.lua). A release of that value then does not delete the key: it
// has the key end at that instant, and changes its value, so that the lock has no holder
// (release.lua).
//
// Invariant: when Lock returns, a majority of the masters keeps the lock for the value, and each
// of them, unless it loses its memory, has the key until d has passed on its clock: extensions
// never shorten a TTL, and every release of a lease goes through keeping. No command that is
// late changes a lock that stays after its release: no holder has its value. A master that lost
// its memory does not vote for the restart guard, which is at least d. Every other
// majority has one of the masters that keep the lock.

// keepable is a claim to a lock that the masters can keep.
type keepable interface {
	keep(value string, d time.Duration) *wire.Command
	left() *wire.Command
}

func (e *exclusive) keep(value string, d time.Duration) *wire.Command {
	return wire.Keep(e.key, e.queue, value, d)
}

func (e *exclusive) left() *wire.Command { return wire.Left(e.key) }

// keeps has a majority keep the lock that the claim won, for a lock with AtLeast.
func (l *lock) keeps(ctx context.Context, cl claim, value string) (asked bool, _ *Error) {
	k, ok := cl.(keepable)
	if !ok {
		return false, nil
	}
	_, failed := l.askMore(ctx, cl, quorum.Question{Command: k.keep(value, *l.opt.atLeast), Since: l.client.watch.Now()})
	return true, failed
}

// keeping makes the release of a lease leave the lock where it is kept. Only the masters know for
// how long, and a majority does. A client does not tell a master that does not, as after a repair:
// its release may arrive late, or be that of an adopted lease, and would start d again (L56).
func (l *lock) keeping(release *wire.Command) *wire.Command {
	if l.opt.atLeast == nil {
		return release
	}
	return release.Keeping()
}

// keepingNothing makes the release of an attempt that came to nothing delete the key, also where
// a master keeps the lock for it already.
func (l *lock) keepingNothing(release *wire.Command) *wire.Command {
	if l.opt.atLeast == nil {
		return release
	}
	return release.KeepingNothing()
}

// lasting is for how long the key of the lock may stay that was stored with this TTL.
func (l *lock) lasting(ttl time.Duration) time.Duration {
	if l.opt.atLeast == nil {
		return ttl
	}
	return max(ttl, *l.opt.atLeast)
}

// remaining asks the masters when a lock that they have refused us will be free at a majority, if
// its holder neither extends nor releases it. It is zero if that is not known.
func (l *lock) remaining(ctx context.Context, cl claim, failed *Error) time.Duration {
	k, ok := cl.(keepable)
	if !ok || l.opt.atLeast == nil || reason(failed) != ErrTaken {
		return 0
	}
	c := l.client
	r := c.members.Ask(quorum.Question{Command: k.left(), Judge: answering{}, Since: c.watch.Now()})
	defer r.Free()
	if c.seams.Wait(ctx, r.Ready()) != nil || r.Outcome() != quorum.Won {
		return 0
	}
	var lefts []time.Duration
	for _, b := range r.Ballots(nil) {
		if left, ok := wire.LeftOf(b.Reply); ok && b.Vote == quorum.Granted && left >= 0 {
			lefts = append(lefts, left)
		}
	}
	if len(lefts) < c.members.Need() {
		return 0
	}
	slices.Sort(lefts)
	return lefts[c.members.Need()-1]
}

// answering counts every answer to Left as granted.
type answering struct{}

// Judge implements quorum.Judge.
func (answering) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	_, ok := wire.LeftOf(r)
	return taken(ok, false)
}
