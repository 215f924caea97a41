package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// Locker is a lock that is held by one lease: a Mutex, a Multi, an RWMutex for writing
// and its RLocker for reading.
type Locker interface {
	// Lock waits until it holds the lock, or ctx ends; see Mutex.Lock.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock makes one attempt; see Mutex.TryLock.
	TryLock(ctx context.Context) (*Lease, error)
}

// Do runs f while holding the lock. The context given to f is derived from ctx. It also
// ends when the lease does, and when f has returned. Do returns the error of f unchanged,
// ErrLost or ErrExpired when the lease ended before f did, and both errors joined if
// there are both.
func Do(ctx context.Context, l Locker, f func(ctx context.Context) error) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	return lease.run(ctx, f)
}

// run runs f under the lease, and unlocks.
func (l *Lease) run(ctx context.Context, f func(ctx context.Context) error) (err error) {
	s := l.scope(ctx)
	defer s.leave()
	// Deferred, so that a panic in f does not leave the lock behind.
	defer func() { err = both(err, l.Unlock(ctx)) }()
	return f(s.ctx)
}

// both joins two errors. If at least one is nil, it returns the other unchanged.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// scope is the time in which Do runs a function under a lease. Its context ends with
// the caller's, with the lease, and when the function has returned.
type scope struct {
	lease  *Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	next   *scope // of the same lease
}

// scope begins a scope. It ends by leave.
func (l *Lease) scope(ctx context.Context) *scope {
	s := &scope{lease: l}
	s.ctx, s.cancel = context.WithCancelCause(l.carry(ctx))
	l.mu.Lock()
	cause := l.cause
	if cause == nil {
		s.next, l.scopes = l.scopes, s
	}
	l.mu.Unlock()
	if cause != nil {
		s.cancel(cause)
	}
	return s
}

// leave ends the scope, and takes it off the list: a lease that is held for weeks must not collect them.
func (s *scope) leave() {
	l := s.lease
	l.mu.Lock()
	for at := &l.scopes; *at != nil; at = &(*at).next {
		if *at == s {
			*at = s.next
			break
		}
	}
	l.mu.Unlock()
	s.cancel(nil)
}

// kind is all that tells one kind of lock from another. Attempts, waits, renewals, losses and
// releases are the same for every kind, and know nothing of keys.
type kind struct {
	id         string       // tells the locks of a client apart: a word for the kind, a colon, and a part that no other lock of that kind has
	label      string       // names the kind in events
	registered int          // see waiting.Options
	atOnce     bool         // see there
	passed     bool         // callers that do not queue pass those who do: see values.Passes
	names      []string     // of a Multi, which locks these; nil: the name of the lock alone
	claim      func() claim // what one caller asks the masters for
}

// claim is what one caller asks the masters for, and what its lease then holds: the
// commands for a node, and the meaning of the replies. Every command has the value as
// its first argument. All callers share a claim without state.
type claim interface {
	waiting.Claim
	extend(value string, ttl time.Duration) *wire.Command
	repair(value string, ttl time.Duration) *wire.Command
	// release deletes what value holds, leaves the queue and hands the lock on.
	release(value string, ttl time.Duration) *wire.Command
}

// agreeing is a claim for which a majority of grants is not enough: the grants must also
// agree in something, such as a fencing token.
type agreeing interface {
	claim
	// agree reads what every node said and returns the question that makes them agree; a
	// question without a command if they do already. A majority of all nodes wins the
	// question, which may count some as Granted without asking them. If its answers must
	// agree, too, next makes the question after it.
	agree(value string, ttl time.Duration, ballots []quorum.Ballot) (q quorum.Question, next agreement, err error)
}

// agreement reads what every node said to the question before, as agree does.
type agreement func(ballots []quorum.Ballot) quorum.Question

// lock is one lock of a client, of whatever kind: what all handles are made of.
type lock struct {
	client *Client
	kind   kind
	name   string
	opt    lockOptions
	values values.Maker
	nest   any     // the key by which nested calls find a lease that excludes them; nil: none
	tenure *tenure // whose leases these are; nil: they are their callers'
	home   *home   // of a handle of Groups: finds the client to lock with; nil: it is this client
	told   bool    // the observer knows that the caller waits
	err    error   // for invalid options; every operation returns it
}

// value returns the value of a new attempt, which was never stored before.
func (l *lock) value() string { return l.values.First(l.client.seams.Number()) }

// passing returns the value of an attempt that no wait follows.
func (l *lock) passing() string {
	m := l.values
	if l.kind.passed && l.opt.poll == nil {
		m.Mark += values.Passes
	}
	return m.First(l.client.seams.Number())
}

// What the waiters of the lock need of it: see waiting.Lock.

// ID names the queue in which the lock's callers wait. Callers that wait in different ways
// have queues of their own: a caller that polls must not delay the others by its pauses, and
// a queue has one number of callers that are registered (L54).
func (l *lock) ID() string {
	switch {
	case l.opt.poll != nil:
		return "polled " + l.kind.id
	case l.opt.fair:
		return "fair " + l.kind.id
	}
	return l.kind.id
}

func (l *lock) Name() string                      { return l.name }
func (l *lock) NewClaim() waiting.Claim           { return l.kind.claim() }
func (l *lock) NewID() string                     { return l.values.ID(l.client.seams.Number()) }
func (l *lock) Value(id string, n int) string     { return l.values.Of(id, n) }
func (l *lock) Discard(c waiting.Claim, v string) { l.discard(c.(claim), v, nil) }

func (l *lock) Waits() {
	if !l.told {
		l.observe(Event{Kind: LockWaiting})
	}
}

func (l *lock) Options() waiting.Options {
	return waiting.Options{TTL: l.opt.ttl, Poll: l.opt.poll, Fair: l.opt.fair, AtOnce: l.kind.atOnce, Registered: l.kind.registered}
}

// budget is how long a lease of ttl may be relied on from its first send.
func (c *Client) budget(ttl time.Duration) time.Duration {
	return c.seams.Budget(ttl)
}

// fail describes a failed operation by the votes of a round.
func (l *lock) fail(op string, err error, r *quorum.Round) *Error {
	if r == nil {
		return l.failed(op, err, nil)
	}
	var few [16]quorum.Ballot // on the stack: contenders fail often
	return l.failed(op, err, r.Ballots(few[:0]))
}

// failed describes a failed operation by its ballots, if there are any.
func (l *lock) failed(op string, err error, ballots []quorum.Ballot) *Error {
	return &Error{Op: op, Name: l.name, Err: err, Votes: l.votes(ballots)}
}

// votes says for people what the ballots mean; nil if no node was asked.
func (l *lock) votes(ballots []quorum.Ballot) []Vote {
	if len(ballots) == 0 {
		return nil
	}
	nodes := l.client.members.Nodes()
	votes := make([]Vote, len(nodes))
	for i, b := range ballots {
		votes[i] = Vote{Node: nodes[i].Addr(), Vote: b.Vote, Late: b.Late, After: b.After}
		if b.Reply.Err != nil {
			votes[i].Err = b.Reply.Err
		}
	}
	return votes
}

// check refuses to start an operation that cannot end well. The operation is a use of the client, and
// ends its rest.
func (l *lock) check(ctx context.Context, op string) error {
	if err := l.refusal(ctx, op); err != nil {
		return err
	}
	l.client.seq.Add(1) // no value is numbered, but the client is in use
	l.client.rouse(ctx)
	return l.refused(ctx, op)
}

// refused is refusal, or that the name is in another group, as far as is known after the rest.
func (l *lock) refused(ctx context.Context, op string) error {
	if err := l.refusal(ctx, op); err != nil {
		return err
	}
	if err := l.moved(); err != nil {
		return &Error{Op: op, Name: l.name, Err: err}
	}
	return nil
}

// refusal is why an operation cannot end well, or nil.
func (l *lock) refusal(ctx context.Context, op string) error {
	switch {
	case l.err != nil:
		return l.err
	case ctx.Err() != nil:
		return &Error{Op: op, Name: l.name, Err: ended(ctx)}
	case l.client.closed.Load():
		return &Error{Op: op, Name: l.name, Err: ErrClosed}
	}
	return nil
}

// leaseVote reads the reply to a command about a lease that is held. These replies are
// the same in every kind of lock. Not ok: op is another one.
func leaseVote(op wire.Op, r wire.Reply) (vote quorum.Vote, ok bool) {
	switch op {
	case wire.OpExtend:
		return extended(r), true
	case wire.OpRelease:
		return released(r), true
	}
	return quorum.Failed, false
}

// extended reads the reply to an extend: 1 extended, 0 absent, -1 another value.
func extended(r wire.Reply) quorum.Vote {
	switch state, ok := wire.KeyStateOf(r); {
	case !ok, state == wire.Ours && r.Young:
		return quorum.Failed // a young master says nothing yet, neither way (S35)
	case state == wire.Ours:
		return quorum.Granted
	}
	return quorum.Refused
}

// released reads the reply to a release. If the value was deleted or is absent, or
// another value is there, the node no longer stores ours.
func released(r wire.Reply) quorum.Vote {
	if _, ok := wire.KeyStateOf(r); ok {
		return quorum.Granted
	}
	return quorum.Failed
}

// done judges a command that a master has either done, and answers with 1, or not.
type done struct{}

// Judge implements quorum.Judge.
func (done) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	state, ok := wire.KeyStateOf(r)
	return taken(ok && state == wire.Ours, ok)
}

// isAbsent reads the reply to an extend or release.
func isAbsent(r wire.Reply) bool {
	state, ok := wire.KeyStateOf(r)
	return ok && state == wire.Absent
}

// moved returns ErrMoved if the client's group does not have the names of the lock, by the newest
// map that its masters have told.
//
// Invariant: every vote that counts has told us its master's map before. After an operator has marked
// all masters, each quorum has one that tells the new map. So whoever looks at the map after the last
// vote knows of the change.
func (l *lock) moved() error {
	g := l.client.opt.group
	if g.masters == nil {
		return nil
	}
	m, _ := g.masters.Map()
	if l.kind.names == nil {
		if m.Owner(l.name) == g.name {
			return nil
		}
		return moved(m, []string{l.name})
	}
	if common(l.kind.names, m.Owner) != g.name {
		return moved(m, l.kind.names)
	}
	return nil
}

// moved says where the names are.
func moved(m spread.Map, names []string) error {
	if m.Number == 0 {
		return fmt.Errorf("%w: no master has told a map of groups (see redlock.Spread)", ErrMoved)
	}
	var where []string
	for _, name := range names {
		owner := m.Owner(name)
		if owner == "" {
			owner = "no group, since it moves to " + spread.Highest(m.Next, name)
		}
		if where = append(where, fmt.Sprintf("%.60q is in %s", name, owner)); len(where) == maxListed {
			break
		}
	}
	return fmt.Errorf("%w: %s", ErrMoved, strings.Join(where, ", "))
}
