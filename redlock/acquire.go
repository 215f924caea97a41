package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// This file is Redlock. An attempt asks every master at once to store a fresh
// value, is decided by a quorum of them, and yields a lease only if validity is
// left after the deciding vote; whatever else happens, every master is told to
// delete the value again. Waiting is the same attempt made again, when a
// release is announced or a timer says so, and through one gate master first.

// try makes one attempt.
func (l *lock) try(ctx context.Context) (*Lease, error) {
	if err := l.check(ctx, "lock"); err != nil {
		return nil, err
	}
	lease, failed := l.attempt(ctx)
	l.observeAttempt(lease, failed)
	if failed != nil {
		return nil, failed
	}
	return lease, nil
}

// acquire makes attempts until one succeeds or ctx ends.
func (l *lock) acquire(ctx context.Context) (*Lease, error) {
	if err := l.check(ctx, "lock"); err != nil {
		return nil, err
	}
	w := l.client.lobby.visit(l.kind.id())
	lease, failed := l.first(ctx, w)
	l.observeAttempt(lease, failed)
	if failed == nil {
		w.leave()
		return lease, nil
	}
	if w == nil && failed.again() {
		w = l.client.lobby.enter(l.kind)
	}
	defer w.leave()
	for p := (patience{}); failed.again(); {
		if err := p.wait(ctx, w, failed); err != nil {
			return nil, failed.cutShort(ctx)
		}
		before := failed
		lease, failed = l.next(ctx, w)
		l.observeAttempt(lease, failed)
		switch {
		case failed == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, before.cutShort(ctx)
		}
	}
	return nil, failed
}

// first makes the first attempt. Where others have waited lately, the gate is
// asked first; where callers of this client are waiting now, nobody is: they
// will be served in turn.
func (l *lock) first(ctx context.Context, w *waiter) (*Lease, *Error) {
	switch {
	case w == nil:
		return l.attempt(ctx)
	case !w.isFirst():
		return nil, &Error{Op: "lock", Name: l.name, Err: ErrTaken}
	default:
		return l.attemptFromGate(ctx, w)
	}
}

// next makes the attempt that follows a wait.
func (l *lock) next(ctx context.Context, w *waiter) (*Lease, *Error) {
	if w.takeTurn() {
		lease, failed := l.attemptInTurn(ctx, w)
		if failed == nil || ctx.Err() != nil {
			return lease, failed
		}
	}
	return l.attemptFromGate(ctx, w)
}

// attempt asks all masters at once.
func (l *lock) attempt(ctx context.Context) (*Lease, *Error) {
	c := l.client
	value := c.value(l.opt.metadata)
	// Time counts from before the first send: no master can have started the
	// key's TTL earlier.
	start := c.watch.Now()
	r := c.panel.Ask(l.question(value, start))
	defer r.Free()
	lease, failed := l.settle(ctx, r, value, start)
	if failed != nil {
		l.discard(value, r)
	}
	return lease, failed
}

// question asks for the lock.
func (l *lock) question(value string, since drift.Instant) quorum.Question {
	return quorum.Question{Command: l.kind.acquire(value, l.opt.ttl), Judge: l.kind.taken, Since: since}
}

// attemptFromGate asks one master first, the same for all contenders, and the
// others only if that one granted. However many are waiting, one of them gets
// through the gate, where asking all masters at once would split the vote (L2).
func (l *lock) attemptFromGate(ctx context.Context, w *waiter) (*Lease, *Error) {
	c := l.client
	value := c.value(l.opt.metadata)
	start := c.watch.Now()
	probe := l.kind.probe(value, l.opt.ttl, w.line())
	first, n := w.gate(), len(c.panel.Nodes())
	var silent quorum.Set
	for tries := range n {
		gate := (first + tries) % n
		r := c.panel.AskOne(gate, probe, l.kind.taken)
		err := c.seams.Wait(ctx, r.Ready())
		b := r.Ballot(gate)
		switch {
		case err != nil:
			failed := l.fail("lock", ended(ctx), r)
			r.Free()
			l.discard(value, nil)
			return nil, failed
		case b.Vote == quorum.Granted:
			q := l.question(value, c.watch.Now())
			q.Granted = quorum.Only(gate)
			// Not asked again: if they store the value after all, they would
			// refuse it, and seem to have nothing that must be released.
			q.Absent = silent
			r.Free()
			w.answered(gate)
			return l.throughGate(ctx, w, q, value, start)
		case b.Vote == quorum.Refused:
			failed := l.fail("lock", ErrTaken, r)
			failed.freeIn = freeIn(b.Reply)
			r.Free()
			w.answered(gate)
			if tries > 0 {
				l.discard(value, nil) // a gate that failed before may have taken it
			}
			return nil, failed
		}
		silent |= quorum.Only(gate)
		r.Free()
	}
	l.discard(value, nil)
	return nil, &Error{Op: "lock", Name: l.name, Err: l.closedOr(ErrNoQuorum)}
}

// attemptInTurn asks all masters at once, as the only one who was woken.
func (l *lock) attemptInTurn(ctx context.Context, w *waiter) (*Lease, *Error) {
	value := l.client.value(l.opt.metadata)
	start := l.client.watch.Now()
	return l.throughGate(ctx, w, l.question(value, start), value, start)
}

// throughGate asks the masters that q is for. As long as the gate is ours, those
// that refuse may only be behind with the release that let us through, so they
// are asked again before the attempt counts as failed; the others who want the
// lock wait at the gate meanwhile.
func (l *lock) throughGate(ctx context.Context, w *waiter, q quorum.Question, value string, start drift.Instant) (*Lease, *Error) {
	for pause := firstPause; ; pause *= 2 {
		r := l.client.panel.Ask(q)
		lease, failed := l.settle(ctx, r, value, start)
		if failed == nil {
			r.Free()
			return lease, nil
		}
		q = r.Again(q)
		hopeful := failed.Err == ErrTaken && q.Granted.Has(w.gate()) && pause <= lastPause && l.winnable(q)
		if !hopeful || w.rest(ctx, l.client.jitter(pause)) != nil {
			l.discard(value, r)
			r.Free()
			return nil, failed
		}
		r.Free()
	}
}

// winnable reports whether enough masters are left to ask. A round that cannot
// be won would be lost for want of a quorum, although the masters did answer.
func (l *lock) winnable(q quorum.Question) bool {
	n := len(l.client.panel.Nodes())
	return n-q.Absent.Len() >= quorum.Size(n)
}

// How long those who refused behind the gate are given before they are asked
// again: three times, five milliseconds in all.
const (
	firstPause = 600 * time.Microsecond
	lastPause  = 4 * firstPause
)

// settle waits for the decision of a round, and makes a lease of it if it was
// won with validity left.
func (l *lock) settle(ctx context.Context, r *quorum.Round, value string, start drift.Instant) (*Lease, *Error) {
	c := l.client
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return nil, l.fail("lock", ended(ctx), r)
	}
	if r.Outcome() != quorum.Won {
		return nil, l.fail("lock", l.closedOr(whyLost(r.Tally())), r)
	}
	if c.seams.Unsafe.EarlyElapsed {
		start = c.watch.Now()
	}
	// The stopwatch is read after the deciding vote, as the last thing before
	// the lease is handed out: whatever delayed us until here counts (S6, S23).
	lease := newLease(ctx, l, value, start)
	if lease.left(c.watch.Now()) <= 0 {
		return nil, l.fail("lock", ErrExpired, r)
	}
	if !lease.begin() {
		return nil, l.fail("lock", ErrClosed, r)
	}
	return lease, nil
}

// discard has the masters delete the value of an attempt that came to nothing,
// including those that failed or have not answered, but not those that refused:
// they never stored it. It neither waits nor depends on the caller's context
// (L9): commands to a node stay in order, so the release runs after the acquire
// wherever that may run.
func (l *lock) discard(value string, r *quorum.Round) {
	if l.client.seams.Unsafe.SkipRelease {
		return
	}
	cmd := l.release(value, l.opt.ttl, quietly)
	for i, n := range l.client.panel.Nodes() {
		if r == nil || r.Ballot(i).Vote != quorum.Refused {
			n.Do(cmd, nobodyAsks)
		}
	}
}

func nobodyAsks(node.Reply) {}

// release is the command that deletes value.
func (l *lock) release(value string, ttl time.Duration, wake wakeup) *node.Command {
	cmd := l.kind.release(value, ttl, wake)
	if l.client.seams.Unsafe.BlindDelete {
		cmd = &node.Command{Op: cmd.Op, Name: "DEL", Keys: cmd.Keys, Keep: cmd.Keep}
	}
	return cmd
}

// released counts every answer as a yes: whether the key was deleted, absent or
// somebody else's, the node does not hold the value any more.
func released(node.Reply) quorum.Vote { return quorum.Granted }

// whyLost tells busy from broken: without a quorum of answers nothing is known,
// otherwise somebody else was there first.
func whyLost(t quorum.Tally) error {
	if t.Unreachable() {
		return ErrNoQuorum
	}
	return ErrTaken
}

func (l *lock) closedOr(err error) error {
	if l.client.closed.Load() {
		return ErrClosed
	}
	return err
}

// again reports whether another attempt may end differently.
func (e *Error) again() bool {
	return e.Err == ErrTaken || e.Err == ErrNoQuorum || e.Err == ErrExpired
}

// freeIn reads from a refused probe when the holder's TTL ends; zero: unknown.
func freeIn(r node.Reply) time.Duration {
	ms, ok := r.Value.(int64)
	if !ok || ms < 0 {
		return 0
	}
	return time.Duration(ms+1) * time.Millisecond
}

// cutShort says that ctx ended, and what stood in the way until then.
func (e *Error) cutShort(ctx context.Context) *Error {
	return &Error{Op: e.Op, Name: e.Name, Err: ended(ctx), Last: e.Err, Votes: e.Votes}
}

// ended is the error of a context that ended, with its cause if that says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
