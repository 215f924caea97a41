package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// These are the reasons why an operation fails. Compare with errors.Is; the Error
// around them has every node's vote.
var (
	// ErrTaken: enough nodes answered, and another client holds the lock or waits for it first. TryLock of
	// a Cached lock also returns it when another caller of the client has the lock.
	ErrTaken = waiting.ErrTaken
	// ErrNoQuorum: too few nodes answered to say anything.
	ErrNoQuorum = waiting.ErrNoQuorum
	// ErrLost: no quorum of nodes stores our value any more, although the
	// validity had not ended: deleted, evicted, flushed or restarted.
	ErrLost = errors.New("lost")
	// ErrExpired: the validity ended before it was renewed, or before the
	// quorum had answered.
	ErrExpired = waiting.ErrExpired
	// ErrNotHeld: the lease was unlocked before, had ended before it was to be adopted, or is of
	// another lock.
	ErrNotHeld = errors.New("not held")
	// ErrClosed: the client is closed.
	ErrClosed = errors.New("client closed")
	// ErrPermits: the semaphore has another number of permits than the handle.
	ErrPermits = errors.New("another number of permits")
	// ErrNested: the caller's own lease holds the lock, so it would wait for itself.
	ErrNested = errors.New("held by the caller itself")
	// ErrNotQueued: no client of that id waits for the lock, as far as a majority of the masters knows.
	ErrNotQueued = errors.New("not queued")
	// ErrMoved: the names are spread over several groups of masters, and this client's group does
	// not have the name, or not any more.
	ErrMoved = errors.New("another group of masters has the name")
	// ErrUndelivered: at the end of Close, some master had not confirmed that it
	// stores nothing of the client. Keys that are left there end with their TTL.
	ErrUndelivered = errors.New("releases not confirmed")
	// ErrUnlocked is the cause of a lease's context after Unlock.
	ErrUnlocked = errors.New("unlocked")
)

// Error is a failed operation on one lock. It prints as one line.
//
// errors.Is finds Err and, when a context ended while waiting, why the last
// attempt had failed. errors.As finds the *multierror.Error with one
// *wire.Error for every node that did not grant.
type Error struct {
	Op    string // "dial", "lock", "adopt", "extend", "unlock", "inspect", "health", ...
	Name  string // the lock; empty for "dial"
	Err   error  // one of the errors above, or the context's error
	Votes []Vote // every node's vote, in the order of configuration; nil if no node was asked

	// Remaining is for how long at most the lock stays taken if its holder does not extend it.
	// TryLock finds it out for a lock with AtLeast that is taken. Zero: not known.
	Remaining time.Duration

	last      error // why the last attempt failed, when Err is the context's; nil if it did not
	onlyAsked bool  // the votes are of a question before the operation
}

// Vote is what one node answered.
type Vote struct {
	Node string
	Vote quorum.Vote
	Late bool  // it came when the outcome was decided
	Err  error // why the vote is Failed, else nil
	// After is how long the answer took, counted from when the nodes were asked. Zero:
	// no answer has come yet, or the client has no observer and did not measure.
	After time.Duration
}

// answersOnly reports whether the votes are answers to a question. Then nothing was there
// to be granted: Granted says that the node answered.
func (e *Error) answersOnly() bool {
	switch e.Op {
	case "dial", "health", "inspect", "leader", "list", "count":
		return true
	}
	return e.onlyAsked
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("redlock: " + e.Op)
	if e.Name != "" {
		fmt.Fprintf(&b, " %q", e.Name)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Remaining > 0 {
		fmt.Fprintf(&b, " for another %v", e.Remaining)
	}
	if e.last != nil {
		fmt.Fprintf(&b, ", last attempt: %v", e.last)
	}
	if len(e.Votes) == 0 {
		return b.String()
	}
	granted, word := 0, quorum.Granted.String()
	if e.answersOnly() {
		word = "answered"
	}
	for _, v := range e.Votes {
		if v.Vote == quorum.Granted && !v.Late {
			granted++
		}
	}
	fmt.Fprintf(&b, " (%d of %d %s, %d needed", granted, len(e.Votes), word, quorum.Size(len(e.Votes)))
	for i, v := range e.Votes {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(v.in(word))
	}
	b.WriteString(")")
	return b.String()
}

func (v Vote) String() string { return v.in(quorum.Granted.String()) }

// in is the vote, with a word for Granted.
func (v Vote) in(granted string) string {
	said := v.Vote.String()
	if v.Vote == quorum.Granted {
		said = granted
	}
	switch {
	case v.Err == nil && v.Late:
		return v.Node + " " + said + " too late"
	case v.Err == nil:
		return v.Node + " " + said
	}
	// A wire.Error names the node itself.
	if ne := new(wire.Error); errors.As(v.Err, &ne) {
		return v.Node + " " + ne.Err.Error()
	}
	return v.Node + " " + v.Err.Error()
}

// Unwrap returns what errors.Is and errors.As look through.
func (e *Error) Unwrap() []error {
	errs := []error{e.Err}
	if e.last != nil {
		errs = append(errs, e.last)
	}
	if nodes := e.nodes(); nodes != nil {
		errs = append(errs, nodes)
	}
	return errs
}

// nodes is built only on demand: a contended lock fails often, and most callers do not
// read the details.
func (e *Error) nodes() *multierror.Error {
	var all *multierror.Error
	for _, v := range e.Votes {
		if v.Vote == quorum.Failed && v.Err != nil {
			all = multierror.Append(all, v.Err)
		}
	}
	if all != nil {
		all.ErrorFormat = oneLine
	}
	return all
}

func oneLine(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "; ")
}
