package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// This file is Redlock. An attempt asks all masters in parallel to store a fresh value.
// A quorum of the masters decides it, and it yields a lease only if validity is left
// after the deciding vote. Otherwise a release deletes the value at every master.
// A Lock whose attempt fails waits in a queue at the masters: internal/waiting.

// try makes one attempt.
func (l *lock) try(ctx context.Context) (*Lease, error) {
	if l.home != nil {
		return l.home.once(ctx, (*lock).tryOnce)
	}
	k := call{ctx: ctx}
	lease, err := l.tryOnce(&k)
	l.observeCall(&k, lease, err)
	return lease, err
}

// begin is check for a call that is about to ask for votes, and number a value. If the client rested, the
// age of the votes counts from the end of the rest, and not from the call.
func (l *lock) begin(k *call) error {
	k.asked = k.since
	if err := l.refusal(k.ctx, "lock"); err != nil {
		return err
	}
	if l.client.rouse(k.ctx) {
		k.asked = l.client.watch.Now()
	}
	return l.refused(k.ctx, "lock")
}

func (l *lock) tryOnce(k *call) (*Lease, error) {
	if outer, err := l.nested(k); k.nested {
		return outer, err
	}
	k.since = l.client.watch.Now()
	if err := l.begin(k); err != nil {
		return nil, err
	}
	defer l.client.leave()
	if !l.client.enter() {
		return nil, l.fail("lock", ErrClosed, nil)
	}
	cl, value := l.kind.claim(), l.passing()
	lease, failed, r := l.attempt(k, cl, value)
	defer r.Free()
	if failed != nil {
		l.discard(cl, value, r)
		failed.Remaining = l.remaining(k.ctx, cl, failed)
		return nil, failed
	}
	return lease, nil
}

// acquire makes an attempt. If that fails, it waits until the lock is acquired or ctx
// ends. If other callers have waited recently, it waits in line behind them.
func (l *lock) acquire(ctx context.Context) (*Lease, error) {
	if l.home != nil {
		return l.home.until(ctx, (*lock).tryAndWait)
	}
	k := call{ctx: ctx}
	lease, err := l.tryAndWait(&k)
	l.observeCall(&k, lease, err)
	return lease, err
}

func (l *lock) tryAndWait(k *call) (*Lease, error) {
	if outer, err := l.nested(k); k.nested {
		return outer, err
	}
	k.since = l.client.watch.Now()
	if err := l.begin(k); err != nil {
		return nil, err
	}
	defer l.client.leave()
	if !l.client.enter() {
		return nil, l.fail("lock", ErrClosed, nil)
	}
	w := l.client.queues.Join(l)
	if w == nil && l.kind.atOnce {
		w = l.client.queues.Queue(l, l.kind.claim(), "", nil)
	}
	if w == nil {
		cl, value := l.kind.claim(), l.value()
		lease, failed, r := l.attempt(k, cl, value)
		defer r.Free()
		if failed == nil {
			return lease, nil
		}
		if !failed.again() {
			l.discard(cl, value, r)
			return nil, failed
		}
		w = l.client.queues.Queue(l, cl, value, failed)
	}
	return l.wait(k, w)
}

// wait returns when the waiter has the lock or the caller's context ends.
func (l *lock) wait(k *call, w *waiting.Waiter) (*Lease, error) {
	lease, err := l.await(k.ctx, w)
	w.Leave(lease != nil)
	times, votes, told := w.Asked()
	k.waited, k.others = k.waited || told, perhaps
	if told {
		k.others = some
	}
	if l.observed() {
		k.attempts, k.votes = k.attempts+times, l.votes(votes)
	}
	switch failed, ok := err.(*Error); {
	case err == nil:
		return lease, nil
	case ok:
		return nil, failed
	}
	e := l.failed("lock", err, votes)
	last := w.Last() // once: callers of this client may learn more meanwhile
	e.last = reason(last)
	if failed, ok := last.(*Error); ok && failed.Votes != nil {
		e.Votes = failed.Votes
	}
	return nil, e
}

// await returns a lease, or the error of the call: ErrClosed, the error of the context, or a
// complete Error.
func (l *lock) await(ctx context.Context, w *waiting.Waiter) (*Lease, error) {
	for {
		if err := l.client.seams.Wait(ctx, w.Ready()); err != nil {
			return nil, l.closedOr(ended(ctx))
		}
		switch wins, over := w.Woke(); {
		case over:
			_, votes, _ := w.Asked()
			return nil, l.failed("lock", l.closedOr(reason(w.Last())), votes) // Close ends every wait
		case wins:
			// Validity counts from the ask: the key's TTL at a master that granted the lock is what
			// was left of the registration.
			cl, value, sent, first := w.Won()
			votes := func() []quorum.Ballot { _, votes, _ := w.Asked(); return votes }
			lease, _, failed := l.complete(ctx, cl.(claim), value, sent, first, votes)
			if failed == nil {
				return lease, nil
			}
			w.Failed(failed)
			if !failed.again() {
				return nil, failed
			}
		}
	}
}

// attempt asks all masters in parallel. The caller frees the round. The round is nil if
// the masters were asked a second question: a master that refused the first may store
// the value for the second.
func (l *lock) attempt(k *call, cl claim, value string) (*Lease, *Error, *quorum.Round) {
	c := l.client
	// Time counts from before the first send: no master can have started the key's TTL
	// earlier. The call has just begun, and reading a clock is expensive.
	start := k.asked
	r := c.members.Ask(quorum.Question{Command: cl.Acquire(value, l.opt.ttl), Judge: cl, Since: start})
	lease, asked, failed := l.settle(k.ctx, r, cl, value, start)
	if k.attempts++; failed == nil && l.observed() {
		k.votes = l.votes(r.Ballots(nil))
	}
	if asked {
		r.Free()
		r = nil
	}
	return lease, failed, r
}

// settle waits for the decision of a round, and turns it into a lease if it was won
// with validity left. It reports whether it asked the masters a second question.
func (l *lock) settle(ctx context.Context, r *quorum.Round, cl claim, value string, start drift.Instant) (_ *Lease, asked bool, _ *Error) {
	if err := l.client.seams.Wait(ctx, r.Ready()); err != nil {
		return nil, false, l.fail("lock", ended(ctx), r)
	}
	if r.Outcome() != quorum.Won {
		return nil, false, l.fail("lock", l.closedOr(waiting.WhyLost(cl, r)), r)
	}
	return l.complete(ctx, cl, value, start, start, func() []quorum.Ballot { return r.Ballots(nil) })
}

// complete makes a lease of what a majority granted. Before that it asks what else the lock
// needs: that the grants agree, and with AtLeast that the masters keep the lock. The majority
// was asked at the instant sent, and none of it granted before the instant first. complete
// reports whether it asked more questions.
func (l *lock) complete(ctx context.Context, cl claim, value string, sent, first drift.Instant, votes func() []quorum.Ballot) (_ *Lease, asked bool, failed *Error) {
	if a, ok := cl.(agreeing); ok {
		if asked, failed = l.agree(ctx, a, value, votes()); failed != nil {
			return nil, asked, failed
		}
	}
	if l.opt.atLeast != nil {
		if asked, failed = l.keeps(ctx, cl, value); failed != nil {
			return nil, asked, failed
		}
	}
	now := l.client.watch.Now()
	if l.client.seams.Unsafe.EarlyElapsed {
		sent, first = now, now
	}
	if l.tooOld(first, now) {
		return nil, asked, l.failed("lock", ErrExpired, votes())
	}
	lease, err := l.lease(ctx, cl, value, sent, now)
	if err != nil {
		return nil, asked, l.failed("lock", err, votes())
	}
	return lease, asked, nil
}

// agree makes the grants of a majority agree, if they do not yet, with one or two more
// questions under the same stopwatch. It reports whether it asked any.
func (l *lock) agree(ctx context.Context, cl agreeing, value string, ballots []quorum.Ballot) (asked bool, _ *Error) {
	q, next, err := cl.agree(value, l.opt.ttl, ballots)
	if err != nil {
		return false, l.failed("lock", err, ballots)
	}
	for q.Command != nil {
		asked = true
		ballots, failed := l.askMore(ctx, cl, q)
		if failed != nil || next == nil {
			return asked, failed
		}
		q, next = next(ballots), nil
	}
	return asked, nil
}

// askMore asks one more question of an attempt, which a majority must grant.
func (l *lock) askMore(ctx context.Context, cl claim, q quorum.Question) ([]quorum.Ballot, *Error) {
	q.Judge = cl
	r := l.client.members.Ask(q)
	defer r.Free()
	if err := l.client.seams.Wait(ctx, r.Ready()); err != nil {
		return nil, l.fail("lock", ended(ctx), r)
	}
	if r.Outcome() != quorum.Won {
		return nil, l.fail("lock", l.closedOr(waiting.WhyLost(cl, r)), r)
	}
	return r.Ballots(nil), nil
}

// lease begins the lease if validity is left, and the group has the name. The caller has read now
// after the deciding vote: whatever delayed us until then counts (S6, S23).
func (l *lock) lease(ctx context.Context, cl claim, value string, start, now drift.Instant) (*Lease, error) {
	if err := l.moved(); err != nil {
		return nil, err
	}
	lease := newLease(ctx, l, cl, value, start)
	if lease.left(now) <= 0 {
		return nil, ErrExpired
	}
	if !lease.begin(now) {
		return nil, ErrClosed
	}
	return lease, nil
}

// tooOld reports whether a vote was asked for so long ago that it must not decide an
// attempt: its master may have forgotten it and answer for another holder (S35).
func (l *lock) tooOld(asked, now drift.Instant) bool {
	return now.Sub(asked) > guard.LongestAttempt
}

// discard has the masters delete the value of an attempt that failed, including masters that
// failed or have not answered. If r was the only question of the attempt, discard skips the
// masters that refused it: they never stored the value. It neither waits nor depends on the
// caller's context (L9): commands to a node stay in order, so wherever the acquire runs, the
// release runs after it.
func (l *lock) discard(cl claim, value string, r *quorum.Round) {
	cmd := l.keepingNothing(cl.release(value, l.lasting(l.opt.ttl)))
	for i, n := range l.client.members.Nodes() {
		if r == nil || r.Ballot(i).Vote != quorum.Refused {
			n.Do(cmd, nobodyAsks)
		}
	}
}

func nobodyAsks(wire.Reply) {}

func (l *lock) closedOr(err error) error {
	if l.client.closed.Load() {
		return ErrClosed
	}
	return err
}

// again reports whether another attempt may end differently.
func (e *Error) again() bool { return waiting.Passes(e.Err) }

// ended is the error of a context that ended, with its cause if that says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
