package redlock

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Adopt takes up again the lease of a holder that ended without releasing it: a
// process that wrote Lease.Value down before it crashed goes on where it was. Adopt
// extends value at a majority of the masters and does nothing else. Use a handle with
// the same name and options as the original holder's.
//
// It fails with ErrTaken when another client has the lock, with ErrNotHeld when a
// majority no longer stores value, and with ErrNoQuorum when too few masters
// answered: then it can be tried again, until the TTL has passed. A fenced lease keeps
// its token; Adopt also returns ErrNoQuorum if no majority knows that token.
//
// The value may be another library's: then it is extended, and deleted in the end, but no
// other value is. The value is all it takes to hold the lock. So the first holder must have ended:
// nothing keeps two that use the same value apart.
func (m *Mutex) Adopt(ctx context.Context, value string) (*Lease, error) {
	return m.lock.adopt(ctx, value)
}

// Adopt takes up again the lease of a writer that ended; see Mutex.Adopt. A writer
// that called Downgrade, with whatever result, wrote for the last time: see RAdopt.
func (m *RWMutex) Adopt(ctx context.Context, value string) (*Lease, error) {
	if m.write.err == nil && value != "" && !isWriter(value) {
		return nil, fmt.Errorf("redlock: Adopt: value %q: is a reader's, see RAdopt", value)
	}
	return m.write.adopt(ctx, value)
}

// RAdopt takes up again the lease of a reader that ended; see Mutex.Adopt. It
// downgrades the value of a writer.
func (m *RWMutex) RAdopt(ctx context.Context, value string) (*Lease, error) {
	if err := m.read.ownValue(value); err != nil {
		return nil, err
	}
	return m.read.adopt(ctx, value)
}

// Adopt takes up again the permits of a holder that ended, however many they were; see
// Mutex.Adopt. It fails with ErrPermits when the semaphore has another number of
// permits than this handle says. A fenced lease gets a new token, which is higher:
// only the first holder knew the old one, since others count beside it.
func (s *Semaphore) Adopt(ctx context.Context, value string) (*Lease, error) {
	if err := s.lock.ownValue(value); err != nil {
		return nil, err
	}
	return s.lock.adopt(ctx, value)
}

// Adopt has a leader that restarted go on to lead, with the same token; see
// Mutex.Adopt.
func (e *Election) Adopt(ctx context.Context, value string) (*Lease, error) {
	return e.mutex.Adopt(ctx, value)
}

// ownValue refuses the value of another library, which has neither readers nor permits
// here.
func (l *lock) ownValue(value string) error {
	if client, _, _ := ParseValue(value); l.err == nil && value != "" && client == "" {
		return fmt.Errorf("redlock: Adopt: value %q: is of another library", value)
	}
	return nil
}

func (l *lock) adopt(ctx context.Context, value string) (*Lease, error) {
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
	defer l.client.leave()
	if !l.client.enter() {
		return nil, l.fail("adopt", ErrClosed, nil)
	}
	cl := l.kind.claim()
	if r, ok := cl.(recalling); ok {
		if err := l.recall(k.ctx, r, value); err != nil {
			return nil, err
		}
	}
	start := l.client.watch.Now()
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
	if f, ok := cl.(interface{ fencingToken() uint64 }); ok && l.opt.fenced && f.fencingToken() == 0 {
		return nil, l.fail("adopt", errUnknownToken, r)
	}
	k.votes = l.votes(r.Ballots(nil))
	lease, err := l.lease(k.ctx, cl, value, start, l.client.watch.Now())
	if err != nil {
		return nil, l.failed("adopt", err, nil)
	}
	return lease, nil
}

// errUnknownToken: a majority has the value, but more masters must answer before a
// majority of them has reported the token.
var errUnknownToken = fmt.Errorf("%w knows the fencing token", ErrNoQuorum)

// whyNotAdopted distinguishes a lock of another client from a lock that has ended.
func whyNotAdopted(r *quorum.Round) error {
	if !r.Tally().Conclusive() {
		return ErrNoQuorum
	}
	for _, b := range r.Ballots(nil) {
		if state, ok := wire.KeyStateOf(b.Reply); ok && state == wire.Theirs {
			return ErrTaken
		}
	}
	return ErrNotHeld
}
