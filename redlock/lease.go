package redlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/quorum"
)

// Lease is a lock that is held, for as long as Valid says so.
//
// It renews itself, unless NoRenew was given, and ends in one of three ways: Unlock or
// Release, loss (ErrLost: a quorum of nodes no longer has it), or expiry (ErrExpired: it
// could not be renewed in time). Context ends before the validity does, and so announces
// loss and expiry. A process that was paused notices only when it resumes; writes that it
// makes before it notices can be stopped only by a fencing token (S7).
//
// A Lease is safe for concurrent use.
type Lease struct {
	lock  *lock
	claim claim
	value string

	mu seam.Mutex
	validity
	renewAt  time.Duration // when to renew, from since; 0: do not
	renewal  *renewal      // under way, or nil
	cause    error         // why the lease ended, or nil
	risk     risk
	deadline *deadline               // nil without StopWithin
	holds    int32                   // one, and one more for each nested Lock, until they are unlocked; see Reentrant
	ctx      context.Context         // the caller's, until Context is called
	cancel   context.CancelCauseFunc // nil until then
	scopes   *scope                  // of the functions that Do runs, the newest first; endNow takes the list, which then changes no more
	timer    drift.Timer
	requests atomic.Pointer[requests] // nil until Requested is called
	of       *Lease                   // that the masters store, if this is a section of it; see tenure

	links // in the client's list
}

// announceLead is how long before the end of the validity a loss is announced: 2 % of
// the validity, between 1 and 20 ms. On a busy machine timers are late.
func announceLead(budget time.Duration) time.Duration {
	return min(max(budget/50, time.Millisecond), 20*time.Millisecond)
}

// validity is how long a lease may be relied on.
type validity struct {
	since   drift.Instant // before the first send of what a quorum last granted
	budget  time.Duration // how long that may be relied on, from since
	ttl     time.Duration // asked for then
	longest time.Duration // the longest TTL ever asked for: a master may keep the key so long
	rate    float64       // the highest Client.rate since then; budget is divided by it
	rest    time.Duration // until MaxHold, from since
	lacks   quorum.Set    // masters that may not have the key
}

func newLease(ctx context.Context, l *lock, cl claim, value string, start drift.Instant) *Lease {
	le := &Lease{
		lock:     l,
		claim:    cl,
		value:    value,
		deadline: l.newDeadline(),
		holds:    1,
		ctx:      ctx,
		validity: validity{since: start, budget: l.budget(l.opt.ttl), ttl: l.opt.ttl, longest: l.lasting(l.opt.ttl), rest: l.opt.maxHold, lacks: ^quorum.Set(0)},
	}
	le.mu.In(l.client.seams.Steps)
	return le
}

// begin starts to watch the lease. It reports false if the client was closed
// meanwhile.
func (l *Lease) begin(now drift.Instant) bool {
	if !l.lock.client.keep(l) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewIn(l.pace(l.lock.client.jitter(l.budget / freshPart)))
	l.setTimer(now)
	return true
}

// freshPart is how old a new lease may be, as a part of its reach, without a renewal. A bare majority
// may have granted it, which the failure of one master ends: the renewal puts the key where it is
// missing. And the caller may have waited for it, so that a part of its validity is gone.
const freshPart = 16

// Value returns the value stored at the nodes, unique to this lease but for Cached.
func (l *Lease) Value() string { return l.value }

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.lock.name }

// Token returns the fencing token of this lease, 0 if the lock is not Fenced. It
// stays the same as long as the lease does.
func (l *Lease) Token() uint64 {
	if f, ok := l.claim.(interface{ fencingToken() uint64 }); ok {
		return f.fencingToken()
	}
	return 0
}

// Valid reports whether the lock is held now: the lease has not ended and its
// validity has not run out.
func (l *Lease) Valid() bool { return l.Err() == nil }

// Until returns when the validity ends, by the client's clock, unless it is
// renewed before. It is the zero time once the lease has ended.
func (l *Lease) Until() time.Time {
	left := l.Remaining()
	if left == 0 {
		return time.Time{}
	}
	return l.lock.client.clock.Now().Add(left)
}

// Remaining returns for how long the lock is held at least, unless the lease is renewed
// before: zero once it has ended.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return 0
	}
	return max(0, l.left(l.now()))
}

// Context returns a context that is cancelled when the lease ends; context.Cause
// returns the reason: ErrUnlocked, ErrLost, ErrExpired or ErrClosed. It carries the
// values of the context given to Lock, not its deadline.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel == nil {
		// Its values, not its cancellation.
		l.ctx, l.cancel = context.WithCancelCause(l.carry(context.WithoutCancel(l.ctx)))
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ctx
}

// Done returns the Done channel of Context.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while the lease is valid, and then the reason why it ended.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why(l.now())
}

// why is the reason why the lease has ended, or nil. The mutex is held.
func (l *Lease) why(now drift.Instant) error {
	switch {
	case l.cause == nil && l.of != nil:
		return l.of.whyAt(now)
	case l.cause == nil && l.left(now) <= 0:
		return ErrExpired
	}
	return l.cause
}

// Unlock ends the lease and deletes it from the nodes, unless a nested Lock still
// holds it; see Reentrant. It returns nil when a quorum of them has deleted it, which
// proves that no other client held the lock before, or when the lease has expired while
// the release was on its way. ErrLost or ErrExpired: the lease had ended before; Unlock
// deletes its remaining keys all the same. ErrNotHeld: Unlock was called before.
// ErrNoQuorum: too few nodes answered, or some did not have it and others did not answer,
// so that its loss is uncertain; the key is deleted on reconnect, or by its TTL.
// ErrClosed: the client was closed, which deletes it, too.
//
// Unlock works although its context has ended (L9); it waits for the nodes at most
// about one node timeout.
func (l *Lease) Unlock(context.Context) error {
	now := l.now()
	last, err := l.letGo(now)
	switch {
	case err != nil:
		return &Error{Op: "unlock", Name: l.lock.name, Err: err}
	case !last:
		return nil
	}
	return l.release(now)
}

// Release is Unlock without waiting for the nodes. When it returns, the lease has
// ended and its release is sent; an Event reports whether a quorum confirmed it. Release
// does nothing for a lease that had ended before.
func (l *Lease) Release() {
	now := l.now()
	if last, err := l.letGo(now); last && err == nil {
		l.releaseLater(now)
	}
}

// letGo ends one hold by its owner's will, and with the last hold the lease. Its error
// says why the lease had ended before.
func (l *Lease) letGo(now drift.Instant) (last bool, err error) {
	l.mu.Lock()
	if l.holds > 1 {
		defer l.mu.Unlock()
		l.holds--
		return false, l.over()
	}
	return true, l.letLast(now)
}

// letLast ends the lease by its owner's will, for a caller that holds the mutex and has seen
// that the last hold has ended. letLast unlocks the mutex.
func (l *Lease) letLast(now drift.Instant) error {
	// From here on no nested Lock gets another hold.
	again, before := l.holds == 0, l.why(now)
	l.holds = 0
	l.workEnded()
	l.mu.Unlock()
	if again {
		return ErrNotHeld
	}
	if before == nil && l.end(ErrUnlocked) {
		return nil
	}
	l.lose(before) // nothing, if it has been lost already
	l.releaseWithheld()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

func (l *Lease) now() drift.Instant { return l.lock.client.watch.Now() }

// left returns what remains of the validity at an instant. The mutex is held.
//
// Invariant: without a renewal the validity never ends later than it seemed before. So
// the highest rate counts, also when our clock seems right again.
func (l *Lease) left(at drift.Instant) time.Duration {
	return l.leftOf(l.budget, at)
}

func (l *Lease) leftOf(budget time.Duration, at drift.Instant) time.Duration {
	if l.of != nil {
		return l.of.leftAt(at)
	}
	l.rate = max(l.rate, l.lock.client.rate())
	return time.Duration(float64(budget)/max(1, l.rate)) - at.Sub(l.since)
}

// leftAt is left for a section: zero for a lease that has ended.
func (l *Lease) leftAt(at drift.Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return 0
	}
	return l.left(at)
}

// detach forgets the caller for whom the lease of a tenure was acquired. It returns why the lease
// has ended already.
func (l *Lease) detach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = context.Background()
	return l.cause
}

// whyAt is why for a section.
func (l *Lease) whyAt(now drift.Instant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why(now)
}

// ended reports whether something has ended the lease, for good. A lease that has only run out is valid
// again if our clock is set back before its timer ends it.
func (l *Lease) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil
}

// end ends the lease for the given reason, once: its owner sees that immediately. The
// caller then releases it at the nodes and takes it off the client's list.
func (l *Lease) end(cause error) bool {
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return false
	}
	l.endNow(cause)
	return true
}

// endNow is end for a caller that holds the mutex, has looked at the lease under it, and
// gives it back by endNow: a renewal that came between look and end would be lost (L26).
func (l *Lease) endNow(cause error) {
	l.cause = cause
	cancel, scopes := l.cancel, l.scopes
	l.scopes = nil
	if cause == ErrClosed && l.deadline != nil {
		l.deadline.closed = l.now()
		l.setStop(l.deadline.closed)
	}
	l.mu.Unlock()

	l.lock.client.timers.Cancel(&l.timer)
	if cancel != nil {
		cancel(cause)
	}
	for s := scopes; s != nil; s = s.next {
		s.cancel(cause)
	}
	l.endRequests()
	switch {
	case l.of != nil:
		l.of.lock.tenure.post(tenureEvent{kind: sectionEnded, section: l})
	case l.lock.tenure != nil:
		l.lock.tenure.post(tenureEvent{kind: leaseEnded, lease: l, cause: cause})
	}
}

// lose ends the lease against the owner's will.
func (l *Lease) lose(cause error) {
	if l.end(cause) {
		l.lost(cause)
	}
}

// lost deletes the remaining keys of a lease that has ended against the owner's will,
// so that other clients need not wait for its TTL.
func (l *Lease) lost(cause error) {
	switch {
	case l.of != nil && cause == ErrClosed:
		l.observeEnd(LeaseReleased, nil)
		return
	case l.of != nil:
		l.observeEnd(LeaseLost, cause)
		return
	}
	l.lock.client.opt.logger.Warn("redlock: lease ended early", "name", l.lock.name, "cause", cause)
	if !l.withholds() {
		l.giveBack()
	}
	l.observeEnd(LeaseLost, cause)
}

// String says which lock it is, by which value it is held, and for how long or
// why no more: one line, for logs.
func (l *Lease) String() string {
	held := fmt.Sprintf("lock %q as %s", l.Name(), l.Value())
	if err := l.Err(); err != nil {
		return held + ": " + err.Error()
	}
	return held + ": valid for another " + l.Remaining().Round(time.Millisecond).String()
}
