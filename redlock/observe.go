package redlock

import "time"

// Observer is told of what happens to a client's locks: for metrics and
// tracing. It is called outside every mutex, from many goroutines, and must
// neither block nor call back into the client.
type Observer func(Event)

// Event is something that happened to a lock.
type Event struct {
	Kind    EventKind
	Name    string        // the lock
	Node    string        // for NodeRepaired
	Elapsed time.Duration // how long it took, for LockAcquired and LeaseRenewed
	Err     error         // what went wrong, nil if nothing; an *Error has every node's vote
}

// EventKind tells events apart.
type EventKind string

const (
	LockAcquired  EventKind = "acquired" // an attempt made a lease
	LockFailed    EventKind = "failed"   // an attempt did not; Lock may try again
	LeaseRenewed  EventKind = "renewed"  // a renewal was decided; Err says if it did not succeed
	NodeRepaired  EventKind = "repaired" // a node that had lost the key was given it back
	LeaseLost     EventKind = "lost"     // a lease ended against the owner's will
	LeaseReleased EventKind = "released" // an Unlock is through
)

func (l *lock) observe(e Event) {
	if observe := l.client.opt.observer; observe != nil {
		e.Name = l.name
		observe(e)
	}
}

func (l *lock) observeAttempt(lease *Lease, failed *Error) {
	switch {
	case l.client.opt.observer == nil:
	case failed != nil:
		l.observe(Event{Kind: LockFailed, Err: failed})
	default:
		lease.mu.Lock()
		since := lease.since // a renewal may be changing it already
		lease.mu.Unlock()
		l.observe(Event{Kind: LockAcquired, Elapsed: l.client.watch.Since(since)})
	}
}
