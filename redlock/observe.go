package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// Event is something that happened to a lock or a node; see WithObserver. For a failed lock, Err
// is an *Error with every node's vote; for a node, it is a *wire.Error.
type Event struct {
	Kind     EventKind
	Lock     string          // the kind of lock: mutex, multi, write, read, semaphore
	Name     string          // of the lock
	Value    string          // of the lease, for events of a lease and LockAcquired
	Node     string          // for events of a node
	Rest     time.Duration   // for which the node must not grant, for node.EventQuarantined
	Elapsed  time.Duration   // how long it took; for events that end a lease, how long it was held
	Waited   bool            // there was a LockWaiting before, and no LockMoved since, for LockAcquired and LockFailed
	Attempts int             // how often the nodes were asked, for LockAcquired and LockFailed
	Votes    []Vote          // when the call was decided, for LockAcquired and LockFailed: the slowest nodes are not waited for
	Err      error           // what went wrong, nil if nothing
	Context  context.Context // of the caller of Lock, for its values; nil for LockWaiting, LockMoved and events of a node alone
}

// EventKind tells events apart. Those of nodes are node.EventConnected, node.EventDisconnected,
// node.EventSilent, node.EventAnswering, node.EventQuarantined and node.EventAdmitted.
type EventKind = node.EventKind

// Each Lock ends in LockAcquired or LockFailed, once. Each lease ends in LeaseLost or
// LeaseReleased, once; if it ends while Lock is returning, that may be told before
// LockAcquired.
//
// NodeRepaired is an event of a lease. The other events of a node report first its state
// when the client begins, and then every change, in order. A lost connection is reported
// once, however often the next attempts fail. Silence ends in EventAnswering, or with the
// connection. A quarantine ends in EventAdmitted, and is reported again when it begins
// anew or has another reason. A node is judged before it is connected: a node that has
// restarted is disconnected, quarantined, connected, admitted. Close causes no event.
const (
	LockWaiting   EventKind = "waiting"  // a Lock was not the first, and begins to wait
	LockMoved     EventKind = "moved"    // a Lock that waits leaves a group of masters with its name; it may wait in another
	LockAcquired  EventKind = "acquired" // a Lock, TryLock or Adopt returned a lease
	LockFailed    EventKind = "failed"   // a Lock, TryLock or Adopt returned an error
	LeaseRenewed  EventKind = "renewed"  // a renewal was decided; Err says if it did not succeed
	LeaseAtRisk   EventKind = "at risk"  // half of the validity has passed without a renewal
	NodeRepaired  EventKind = "repaired" // a node that had lost the key was given it back
	LeaseLost     EventKind = "lost"     // a lease ended against the owner's will; Err says why
	LeaseReleased EventKind = "released" // a lease was given up, also by Close; Err says if it was not confirmed
)

// Result names the outcome of an operation, or how a lease ended, for a label of
// metrics: ok, released, taken, no_quorum, lost, expired, closed, or error.
func (e Event) Result() string {
	if e.Kind == LeaseReleased {
		return "released"
	}
	if e.Err == nil {
		return "ok"
	}
	for _, known := range []struct {
		err  error
		name string
	}{
		{ErrClosed, "closed"}, {ErrLost, "lost"}, {ErrExpired, "expired"}, {ErrNoQuorum, "no_quorum"}, {ErrTaken, "taken"},
	} {
		if errors.Is(e.Err, known.err) {
			return known.name
		}
	}
	return "error"
}

// observed reports whether there is an observer.
func (l *lock) observed() bool { return l.client.opt.observer != nil }

func (l *lock) observe(e Event) {
	if observe := l.client.opt.observer; observe != nil {
		e.Lock, e.Name = l.kind.label, l.name
		observe(e)
	}
}

// observe tells what happened to the lease.
func (l *Lease) observe(e Event) {
	if !l.lock.observed() {
		return
	}
	if t := l.lock.tenure; t != nil {
		if s := t.userOf(l); s != nil {
			s.observe(e)
		}
		return
	}
	l.mu.Lock()
	e.Context = l.ctx
	l.mu.Unlock()
	if e.Context == nil {
		return // a section that no caller has taken
	}
	e.Value = l.value
	l.lock.observe(e)
}

// observeEnd tells how the lease ended, and reads the clock only if there is an
// observer.
func (l *Lease) observeEnd(kind EventKind, err error) {
	if l.lock.observed() && l.lock.tenure == nil { // sections end by themselves
		l.observe(Event{Kind: kind, Err: err, Elapsed: l.held()})
	}
}

// held returns how long the lease has been held: since the first nodes were asked.
func (l *Lease) held() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lock.opt.maxHold - l.rest + now.Sub(l.since)
}

// call is one Lock, TryLock or Adopt: its context, when it began, and what is reported of it to
// the observer.
type call struct {
	ctx      context.Context
	since    drift.Instant
	before   time.Duration // that had passed then, in other groups
	at       *lock         // of the group that was asked last; see home
	asked    drift.Instant // no later than the masters were
	attempts int
	waited   bool
	others   others // whether other processes wait; see tenure
	votes    []Vote // of the attempt that decided
	nested   bool   // the context's own lease decides; the observer is told nothing
}

// observeCall tells how a call ended.
func (l *lock) observeCall(k *call, lease *Lease, err error) {
	if !l.observed() || k.nested {
		return
	}
	e := Event{Kind: LockFailed, Err: err, Attempts: k.attempts, Waited: k.waited, Context: k.ctx, Elapsed: k.before + l.client.watch.Since(k.since)}
	if err == nil {
		e.Kind, e.Value, e.Votes = LockAcquired, lease.value, k.votes
	} else if failed := new(Error); errors.As(err, &failed) {
		e.Votes = failed.Votes
	}
	l.observe(e)
}

// observeNode has the observer told what happens to a node, if the node tells.
func (c *Client) observeNode(n node.Node) {
	o, ok := n.(node.Observable)
	if observe, name := c.opt.observer, n.Addr(); ok && observe != nil {
		o.Observe(func(e node.Event) {
			observe(Event{Kind: e.Kind, Node: name, Rest: e.Rest, Err: e.Err})
		})
	}
}

// Nodes returns how every node stands, in the order of configuration: for health
// checks and dashboards. Nodes that do not tell have only an address. Nodes asks no master: while
// nobody uses the client, what it returns is from the last use.
func (c *Client) Nodes() []node.Status {
	nodes := c.members.Nodes()
	all := make([]node.Status, len(nodes))
	for i, n := range nodes {
		all[i].Addr = n.Addr()
		if s, ok := n.(interface{ Status() node.Status }); ok {
			all[i] = s.Status()
		}
	}
	return all
}

// Healthy returns nil if locks can be taken and held locks are renewed: a quorum of
// the masters votes and stores locks, no lease is at risk (see Lease.AtRisk), and the masters can
// notify the callers that wait. Otherwise it returns all that is wrong, joined, a line each. The first is
// an *Error with every master if no quorum votes. After Close it returns ErrClosed.
//
// Healthy tells what the client knows, which learns of a master that hangs within a few seconds.
// A master that is full, or cannot save, shows that to those who ask for a lock: that counts for ten seconds.
// Healthy asks the masters only if nobody has used the client for ten seconds, and then waits until a
// quorum that votes has answered, for no longer than a node timeout. A probe is no use of the client.
func (c *Client) Healthy() error {
	c.rouse(context.Background())
	if c.closed.Load() {
		return ErrClosed
	}
	all := append([]error{c.voteless()}, c.leasesAtRisk()...)
	if c.queues.Deaf() {
		all = append(all, errors.New("redlock: no quorum of masters can notify the callers that wait: they poll"))
	}
	return errors.Join(all...)
}

// voteless returns an error if no quorum of the masters votes and stores locks.
func (c *Client) voteless() error {
	nodes := c.members.Nodes()
	tally, votes := quorum.NewTally(len(nodes)), make([]Vote, len(nodes))
	for i, n := range nodes {
		votes[i] = Vote{Node: n.Addr(), Vote: quorum.Granted}
		if err := cmp.Or(whyNoVote(n), whyNotStored(n)); err != nil {
			votes[i].Vote, votes[i].Err = quorum.Failed, err
		}
		tally.Count(votes[i].Vote)
	}
	if tally.Outcome() == quorum.Won {
		return nil
	}
	return &Error{Op: "health", Err: ErrNoQuorum, Votes: votes}
}

// whyNoVote returns why a master would not be asked for a vote now, or nil.
func whyNoVote(n node.Node) error {
	if v, ok := n.(node.Voting); ok {
		return v.Votes()
	}
	return nil
}

// whyNotStored returns how a master has refused to store a lock just now, or nil.
func whyNotStored(n node.Node) error {
	if s, ok := n.(node.Storing); ok {
		return s.Stores()
	}
	return nil
}

// leasesAtRisk returns an error for each lease that was not renewed for half of its validity.
func (c *Client) leasesAtRisk() (all []error) {
	now := c.watch.Now()
	for _, l := range c.leases() {
		l.mu.Lock()
		passed, left := now.Sub(l.since), l.left(now)
		risk := l.cause == nil && l.renewed() && passed >= l.half()
		l.mu.Unlock()
		if risk {
			all = append(all, fmt.Errorf("redlock: lock %q was not renewed for %v, and is held for another %v", l.Name(), passed.Round(time.Millisecond), max(0, left).Round(time.Millisecond)))
		}
	}
	return all
}

// risk is that a lease ends because it is not renewed in time.
type risk struct {
	warned bool          // of the present validity
	ch     chan struct{} // of AtRisk; nil until it is called
}

// AtRisk returns a channel that delivers when half of the validity has passed without a
// renewal: too few masters have answered. The lease is still held, and may still be renewed.
// After a renewal the channel may deliver again. It keeps one warning for a late receiver. It
// is never closed, and delivers nothing for a lease that is not to be renewed: with NoRenew, or
// when MaxHold is about to end it. Every call returns the same channel.
func (l *Lease) AtRisk() <-chan struct{} {
	if l.of != nil {
		return l.of.AtRisk()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.risk.ch == nil {
		l.risk.ch = make(chan struct{}, 1)
		if l.risk.warned {
			l.risk.ch <- struct{}{}
		}
		if l.cause == nil {
			l.setTimer(l.now())
		}
	}
	return l.risk.ch
}

// riskAt is when to warn that the lease was not renewed yet, from since; zero: do not. The
// mutex is held.
func (l *Lease) riskAt() time.Duration {
	wanted := l.lock.observed() || l.risk.ch != nil
	if !wanted || !l.renewed() || l.risk.warned {
		return 0
	}
	return l.half()
}

// renewed reports whether the lease is to be renewed: not with NoRenew, nor when MaxHold is about to
// end it. The mutex is held.
func (l *Lease) renewed() bool {
	return !l.lock.opt.noRenew && (l.renewAt > 0 || l.renewal != nil)
}

// half is when half of the validity has passed, from since. The mutex is held.
func (v *validity) half() time.Duration { return v.budget / 2 }

// risky reports whether it is time to warn, once for each validity, and has AtRisk deliver.
// The mutex is held.
func (l *Lease) risky(now drift.Instant) bool {
	at := l.riskAt()
	if at == 0 || now.Sub(l.since) < at {
		return false
	}
	l.risk.warned = true
	if l.risk.ch != nil && len(l.risk.ch) == 0 { // only we send, under the mutex
		l.risk.ch <- struct{}{}
	}
	return true
}

// warn tells the observer if the lease is at risk.
func (l *Lease) warn(risk bool) {
	if risk {
		l.observe(Event{Kind: LeaseAtRisk})
	}
}
