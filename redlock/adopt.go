package redlock

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorumlock/quorum"
)

// Adopt takes up again the lease of a holder that ended without releasing it: a
// process that wrote Lease.Value down before it crashed goes on where it was. It
// extends value at a majority of the masters and nothing else. The handle must be
// made as that of the first holder was.
//
// It fails with ErrTaken when somebody else has the lock, with ErrNotHeld when a
// majority does not store value any more, and with ErrNoQuorum when too few masters
// answered: then it can be tried again, until the TTL has passed. A fenced lease
// keeps its token; ErrNoQuorum also says that no majority knows that.
//
// Whoever has the value has the lock. So the first holder must have ended: nothing
// keeps two that use the same value apart.
func (m *Mutex) Adopt(ctx context.Context, value string) (*Lease, error) {
	l := &m.lock
	k := call{ctx: ctx, since: l.client.watch.Now(), attempts: 1}
	lease, err := l.takeUp(&k, value)
	l.over(&k, lease, err)
	return lease, err
}

func (l *lock) takeUp(k *call, value string) (*Lease, error) {
	if err := l.check(k.ctx, "adopt"); err != nil {
		return nil, err
	}
	if value == "" {
		return nil, fmt.Errorf("redlock: Adopt: value: must not be empty")
	}
	if _, many := l.kind.(*multi); many {
		return nil, fmt.Errorf("redlock: Adopt: %q: must be the lock of one name, not a Multi", l.name)
	}
	defer l.client.leave()
	if !l.client.enter() {
		return nil, l.fail("adopt", ErrClosed, nil)
	}
	cl, start := l.kind.claim(), l.client.watch.Now()
	r := l.client.members.Ask(quorum.Question{Command: cl.extend(value, l.opt.ttl), Judge: cl, Since: start})
	defer r.Free()
	if err := l.client.seams.Wait(k.ctx, r.Ready()); err != nil {
		return nil, l.fail("adopt", ended(k.ctx), r)
	}
	switch {
	case r.Outcome() != quorum.Won:
		return nil, l.fail("adopt", l.closedOr(whyNotAdopted(r)), r)
	case l.tooOld(start, l.client.watch.Now()):
		return nil, l.fail("adopt", ErrExpired, r)
	}
	if f, ok := cl.(*fencing); ok {
		if err := f.recall(k.ctx, l, value); err != nil {
			return nil, err
		}
	}
	k.votes = l.votes(r.Ballots(nil))
	lease, err := l.lease(k.ctx, cl, value, start, l.client.watch.Now())
	if err != nil {
		return nil, l.failed("adopt", err, nil)
	}
	return lease, nil
}

// recall finds the token out: the counter of a majority of the masters that store
// the value. A counter moves only with a grant, or by our own raise, so that it
// stays the lease's as long as its value is there.
func (f *fencing) recall(ctx context.Context, l *lock, value string) error {
	h, err := f.client.Inspect(ctx, l.name)
	if err != nil {
		return err
	}
	if h.Value != value || h.Token == 0 {
		return l.failed("adopt", l.closedOr(ErrNoQuorum), nil)
	}
	f.token.Store(h.Token)
	return nil
}

// whyNotAdopted tells somebody else's lock from one that has ended.
func whyNotAdopted(r *quorum.Round) error {
	if !r.Tally().Conclusive() {
		return ErrNoQuorum
	}
	for _, b := range r.Ballots(nil) {
		if b.Reply.Err == nil && b.Reply.Value == int64(-1) {
			return ErrTaken
		}
	}
	return ErrNotHeld
}
