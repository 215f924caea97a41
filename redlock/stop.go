package redlock

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/aside"
)

// StopWithin stops work that goes on although its lease has ended. The lease ends grace before
// its validity does, unless it is renewed before, and so does its context: Valid, Until and
// Remaining count without grace, and no renewal revives the lease. The lock stays at the masters
// meanwhile. If the lease is not unlocked, or the function of Do has not returned, when the
// validity is about to end, stop is called: before another client can get the lock. If the lease
// is lost (ErrLost), another client may have the lock already, so stop is called immediately.
// Its argument says which lock it was, and errors.Is finds ErrExpired, ErrLost or ErrClosed.
//
// stop must end the work, not ask it to end: Exit(1) ends the process. The lock is released when
// stop has returned. stop is called at most once for each lease, on a goroutine and by a timer of
// its own: nothing that blocks holds it up, and when the machine was suspended it is called within
// a second after that. Like any other code it cannot run while its process stands still (S7).
//
// Close counts as the end of the lease, but not of the work: it ends the context, and waits for
// Unlock, for up to grace. Then stop is called, and Close waits for it, too, but not for long; see
// there. If it returns later, the lock ends with its TTL. So unlock before Close.
//
// grace is at least 1ms, and at most half of the validity, which is about the TTL. Of nested
// calls the option of the first Lock counts, and the last Unlock; see Reentrant.
func StopWithin(grace time.Duration, stop func(cause error)) LockOption {
	return everyLock{change: func(o *lockOptions) { o.stop = &stopping{grace, stop} }}
}

// Exit is a stop for StopWithin that prints one line to standard error and ends the process with
// this code.
func Exit(code int) func(cause error) {
	return func(cause error) {
		aside.Print(os.Stderr, fmt.Sprintf("%v: its work has not ended in time, so the process ends\n", cause), printsFor)
		os.Exit(code)
	}
}

// printsFor is for how long Exit waits for standard error, whose reader may be stuck.
const printsFor = 20 * time.Millisecond

// stopping is the option StopWithin.
type stopping struct {
	grace time.Duration
	stop  func(cause error)
}

// before is the grace, which is zero without StopWithin.
func (s *stopping) before() time.Duration {
	if s == nil {
		return 0
	}
	return s.grace
}

// check refuses a grace that leaves a lease of this TTL no time to be renewed.
func (s *stopping) check(o *options, ttl time.Duration) error {
	if s == nil {
		return nil
	}
	if most := o.budget(ttl) / 2; s.grace < time.Millisecond || s.grace > most {
		return fmt.Errorf("redlock: StopWithin(%v): must be at least 1ms, and at most half of the validity of a lease, %v with a TTL of %v", s.grace, most, ttl)
	}
	if s.stop == nil {
		return fmt.Errorf("redlock: StopWithin(%v, nil): must be a function that stops the work, such as Exit(1)", s.grace)
	}
	return nil
}

// The budget of a lease with StopWithin is less by the grace. So the lease ends early in every
// respect: only this file, and how a release is judged, know of the rest of the validity.
//
// Invariant: until the work has ended or stop has returned, no master is given the release of the
// lease, and a timer is set for stop until the work has ended or stop is called. Only the owner
// ends the work: by Unlock or Release, and by the end of a function of Do.

// deadline is what a lease with StopWithin has besides. The lease's mutex guards it.
type deadline struct {
	timers   *drift.Timers // of this lease alone: stop may block their goroutine
	timer    drift.Timer
	work     work
	over     chan struct{} // closed when the work has ended or stop is called
	gone     bool          // a majority of the masters does not have the lock
	closed   drift.Instant // the end of a lease by Close
	withheld bool          // the lease has ended, its release waits
	closes   bool          // Close was called while stop ran: stop may be the caller
}

// work is how far the work under a lease is.
type work int

const (
	underWay work = iota
	beingStopped
	hasEnded
)

// newDeadline is that of a new lease of the lock; nil without StopWithin.
func (l *lock) newDeadline() *deadline {
	if l.opt.stop == nil {
		return nil
	}
	d := &deadline{timers: drift.NewTimers(l.client.watch), over: make(chan struct{})}
	d.timers.In(l.client.seams.Steps)
	return d
}

// budget is how long a lease of ttl may be relied on from its first send, until its context ends.
func (l *lock) budget(ttl time.Duration) time.Duration {
	return l.client.budget(ttl) - l.opt.stop.before()
}

// wholeLeft is left with the grace: what remains until another client may have the lock. The
// mutex is held.
func (l *Lease) wholeLeft(at drift.Instant) time.Duration {
	return l.leftOf(l.budget+l.lock.opt.stop.before(), at)
}

// stopIn is how long the work may still go on. The mutex is held.
func (l *Lease) stopIn(now drift.Instant) time.Duration {
	d := l.deadline
	if d.gone {
		return 0
	}
	left := l.wholeLeft(now) - announceLead(l.budget)
	if l.cause == ErrClosed {
		left = min(left, l.lock.opt.stop.grace-now.Sub(d.closed))
	}
	return left
}

// setStop has the timer fire when stop is due. The mutex is held.
func (l *Lease) setStop(now drift.Instant) {
	if d := l.deadline; d != nil && d.work == underWay {
		d.timers.SetFrom(&d.timer, now, l.stopIn(now), (*stopTimer)(l))
	}
}

// isGone has stop called immediately: a majority of the masters does not have the lock. The
// mutex is held.
func (l *Lease) isGone(now drift.Instant) {
	if l.deadline != nil {
		l.deadline.gone = true
		l.setStop(now)
	}
}

// stopTimer keeps Fire out of the public methods of Lease.
type stopTimer Lease

// Fire is called when it is time to stop the work.
func (t *stopTimer) Fire() {
	l, d := (*Lease)(t), t.deadline
	now := l.now()
	l.mu.Lock()
	if d.work != underWay || l.stopIn(now) > 0 {
		l.setStop(now)
		l.mu.Unlock()
		return
	}
	d.work = beingStopped
	close(d.over)
	cause, before := l.cause, l.cause != nil
	switch {
	case before:
		l.mu.Unlock()
	case d.gone:
		cause = ErrLost
		l.endNow(cause)
	default: // the timer of the lease is held up
		cause = ErrExpired
		l.endNow(cause)
	}
	// Before anything else: an observer may be what holds the others up.
	l.lock.opt.stop.stop(&Error{Op: "hold", Name: l.lock.name, Err: cause})
	if !before {
		l.lost(cause)
	}
	l.mu.Lock()
	d.work = hasEnded
	l.mu.Unlock()
	l.releaseWithheld()
}

// workEnded is called when the owner unlocks. The mutex is held.
func (l *Lease) workEnded() {
	d := l.deadline
	if d == nil {
		return
	}
	if d.work == underWay {
		d.timers.Close()
		close(d.over)
	}
	d.work = hasEnded
}

// worksOn reports whether the work may go on although the lease has ended, so that its release has
// to wait.
func (l *Lease) worksOn() bool {
	if l.deadline == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline.work != hasEnded
}

// withholds has the release of a lease that has ended wait for its work, if that goes on.
func (l *Lease) withholds() bool {
	d := l.deadline
	if d == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d.withheld = d.work != hasEnded
	return d.withheld
}

// releaseWithheld sends a release that has waited for the work. Until then Close knows that it
// waits.
func (l *Lease) releaseWithheld() {
	d := l.deadline
	if d == nil {
		return
	}
	l.mu.Lock()
	withheld := d.withheld
	l.mu.Unlock()
	if !withheld {
		return
	}
	l.giveBack()
	l.mu.Lock()
	d.withheld = false
	l.mu.Unlock()
	l.lock.client.paid()
}

// mayClose has Close not wait for the stop that runs: it may be what calls Close.
func (l *Lease) mayClose() {
	if l.deadline != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deadline.closes = l.deadline.work == beingStopped
	}
}

// owes reports whether the release still waits for stop, and for how long Close waits for that.
func (l *Lease) owes() (wait time.Duration, withheld bool) {
	if l.deadline == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.deadline.closes {
		wait = l.longest
	}
	return wait, l.deadline.withheld
}

// awaitWork waits until the work under a lease has ended, or stop is called.
func (l *Lease) awaitWork() {
	if l.deadline != nil {
		l.lock.client.seams.Wait(context.Background(), l.deadline.over)
	}
}
