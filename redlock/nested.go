package redlock

import (
	"context"
	"fmt"
	"slices"
)

// Reentrant lets a holder lock again. A Lock with a context from Lease.Context, of the
// same lock and client, returns the same lease with one more hold; the last Unlock
// releases it. The context makes the holder, not the goroutine. A lease for writing
// may be locked again for reading; one for reading not for writing, which is
// ErrNested.
//
// Without Reentrant such a call is refused immediately, with ErrNested and ErrTaken: it
// would wait for itself. With or without Reentrant, the same happens to a Mutex whose name
// the context holds as part of a Multi, to a Multi of which the context holds a name, and
// to a Multi that shares a name with a Multi that the context holds.
func Reentrant() interface {
	MutexOption
	MultiOption
	RWMutexOption
} {
	return reentrantOption{change: func(o *lockOptions) { o.reentrant = true }}
}

// holder is the key by which a context is asked for the lease that holds a lock.
type holder struct {
	client *Client
	nest   string
}

// holders are the keys of several locks that are taken as one.
type holders []holder

// nesting is a context that carries a lease.
type nesting struct {
	context.Context
	lease *Lease
}

// Value implements context.Context.
func (n nesting) Value(key any) any {
	switch k := key.(type) {
	case anyLease:
		return n.lease
	case holder:
		if n.lease.lock.holdsAs(k) {
			return n.lease
		}
	}
	return n.Context.Value(key)
}

// anyLease is the key by which a context is asked whether it carries a lease at all.
type anyLease struct{}

// holdsAs reports whether a lease of the lock holds what the key stands for.
func (l *lock) holdsAs(k holder) bool {
	if all, ok := l.nest.(holders); ok {
		return slices.Contains(all, k)
	}
	return l.nest == k
}

// isAgain reports whether the two locks are the same, so that the holder of one locks it
// again by locking the other. A lock that only shares a name is another lock.
func (l *lock) isAgain(other *lock) bool {
	if _, several := l.nest.(holders); several {
		return l.kind.id == other.kind.id
	}
	return l.nest == other.nest
}

// outer returns the lease of the context that the lock would wait for; nil if there is
// none.
func (l *lock) outer(ctx context.Context) *Lease {
	all, several := l.nest.(holders)
	if !several {
		lease, _ := ctx.Value(l.nest).(*Lease)
		return lease
	}
	if ctx.Value(anyLease{}) == nil {
		return nil
	}
	for _, k := range all {
		if lease, ok := ctx.Value(k).(*Lease); ok && !lease.endIfExpired() {
			return lease
		}
	}
	return nil
}

// nested returns the lease that the context carries for this lock, with one more hold. If it carries
// none that is held, k.nested is false.
func (l *lock) nested(k *call) (*Lease, error) {
	if l.nest == nil {
		return nil, nil
	}
	outer := l.outer(k.ctx)
	if outer == nil || outer.endIfExpired() {
		return nil, nil
	}
	k.nested = true
	switch {
	case !l.isAgain(outer.lock):
		return nil, l.failed("lock", nestedError("as one of other names"), nil)
	case !l.opt.reentrant:
		return nil, l.failed("lock", nestedError("and the lock is not Reentrant"), nil)
	case outer.shared() && l.kind.label != "read":
		return nil, l.failed("lock", nestedError("for reading, and there is no upgrade"), nil)
	case !outer.holdAgain():
		k.nested = false
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
	return nesting{ctx, l}
}

// endIfExpired reports whether the lease has ended. It ends a lease whose validity has run
// out, so that the lease stays ended. Otherwise the lease would be valid again if the clock
// were set back, and a nested Lock that waits because of the expiry would wait for
// itself (L34).
func (l *Lease) endIfExpired() bool {
	l.mu.Lock()
	cause := l.why(l.now())
	if cause == nil || l.cause != nil {
		l.mu.Unlock()
		return cause != nil
	}
	l.endNow(cause)
	l.lost(cause)
	return true
}

// holdAgain counts one more hold, unless the lease has ended.
func (l *Lease) holdAgain() bool {
	if l.endIfExpired() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds == 0 || l.cause != nil {
		return false
	}
	l.holds++
	return true
}

// holdsNow is described at seam.HoldsOf.
func (l *Lease) holdsNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over() != nil {
		return 0
	}
	return int(l.holds)
}
