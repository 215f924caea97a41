package redlock

import (
	"context"
	"slices"
)

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
