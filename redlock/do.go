package redlock

import (
	"context"
	"errors"
	"slices"
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
}

// scope begins one. It ends by leave.
func (l *Lease) scope(ctx context.Context) *scope {
	s := &scope{lease: l}
	s.ctx, s.cancel = context.WithCancelCause(l.carry(ctx))
	l.mu.Lock()
	cause := l.cause
	if cause == nil {
		l.scopes = append(l.scopes, s)
	}
	l.mu.Unlock()
	if cause != nil {
		s.cancel(cause)
	}
	return s
}

// leave ends the scope. A lease that is held for weeks keeps nothing of it.
func (s *scope) leave() {
	l := s.lease
	l.mu.Lock()
	if i := slices.Index(l.scopes, s); i >= 0 {
		l.scopes = slices.Delete(l.scopes, i, i+1)
	}
	l.mu.Unlock()
	s.cancel(nil)
}
