package redlock

import (
	"context"
	"fmt"
)

// Reentrant lets a holder lock again. A Lock with a context from Lease.Context, of the
// same lock and client, returns the same lease with one more hold; the last Unlock
// releases it. The context makes the holder, not the goroutine. A lease for writing
// may be locked again for reading; one for reading not for writing, which is
// ErrNested.
//
// Without Reentrant such a call is refused at once, with ErrNested and ErrTaken: it
// would wait for itself.
func Reentrant() LockOption { return func(o *lockOptions) { o.reentrant = true } }

// holder is the key under which a lease's context carries the lease.
type holder struct {
	client *Client
	nest   string
}

// nested returns the lease that the context carries for this lock, with one more hold;
// nil if it carries none that is held.
func (l *lock) nested(ctx context.Context) (*Lease, error) {
	if l.nest == nil {
		return nil, nil
	}
	outer, _ := ctx.Value(l.nest).(*Lease)
	if outer == nil || outer.expires() {
		return nil, nil
	}
	_, reads := l.kind.(*readers)
	switch {
	case !l.opt.reentrant:
		return nil, l.failed("lock", nestedError("and the lock is not Reentrant"), nil)
	case outer.Shared() && !reads:
		return nil, l.failed("lock", nestedError("for reading, and there is no upgrade"), nil)
	case !outer.holdAgain():
		return nil, nil
	}
	return outer, nil
}

// nestedError is also ErrTaken, and adds who holds the lock.
func nestedError(why string) error {
	return fmt.Errorf("%w: %w: the context's own lease holds it, %s", ErrTaken, ErrNested, why)
}

// carry returns a context from which nested finds the lease.
func (l *Lease) carry(ctx context.Context) context.Context {
	if l.lock.nest == nil {
		return ctx
	}
	return context.WithValue(ctx, l.lock.nest, l)
}

// expires reports whether the lease has ended, and ends it for good if its validity has
// run out. If the clock were set back, it would be valid again, and a nested Lock that
// waits because it was not would wait for itself (L34).
func (l *Lease) expires() bool {
	l.mu.Lock()
	switch {
	case l.cause != nil:
		l.mu.Unlock()
		return true
	case l.left(l.now()) > 0:
		l.mu.Unlock()
		return false
	}
	l.endNow(ErrExpired)
	l.lost(ErrExpired)
	return true
}

// holdAgain counts one more hold, unless the lease has ended.
func (l *Lease) holdAgain() bool {
	if l.expires() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlocked || l.cause != nil {
		return false
	}
	l.more++
	return true
}

// Holds returns how often the lease is held: once, and once more for every nested Lock
// that was not unlocked; zero once it has ended.
func (l *Lease) Holds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over() != nil {
		return 0
	}
	return 1 + l.more
}
