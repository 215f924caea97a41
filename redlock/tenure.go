package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
)

// tenure is what a client knows of one Cached lock while it has the lock or wants it. The masters
// store one lease. Each Lock gets a section of that lease, one at a time.
//
// A tenure is a machine: callers, masters and timers post events, a step decides their effects, and
// the goroutine that posted carries them out (cached.go).
//
// Invariant: there is a section in the state used, and in no other. There is a lease in the states
// used and resting, and in no other. Callers are in line only in the states sought, used and leaving.
type tenure struct {
	client *Client
	id     string

	// Guarded by the mutex of the tenures.
	state   tenureState
	lease   *Lease     // that the masters store; nil: this process does not have the lock
	section *Lease     // the one in use, or nil
	line    []*insider // callers that wait, in the order of their arrival
	wanted  *demand    // nil: no other process is known to wait
	doubt   bool       // while a caller asks, a master may have told that others wait for the lease: a renewal asks
	rested  drift.Instant
	idle    time.Duration // how long the lock may rest, by the handle that used it last
	timer   drift.Timer   // fires no later than when the lock has rested for long enough
	timed   bool          // the timer is set
}

type tenureState uint8

const (
	away    tenureState = iota // this process does not have the lock, and nobody asks for it
	sought                     // a caller asks the masters for it
	used                       // a caller uses it
	resting                    // this process has it, and nobody uses it
	leaving                    // the release of a valid lease is on the way to the nodes: an ask must not overtake it
)

// demand is that another process waits.
type demand struct {
	since  drift.Instant
	passed int // how often the lock was passed within this process meanwhile
}

// mostPassed and longestPassing bound for how long a lock is passed within the process while
// another one waits.
const (
	mostPassed     = 16
	longestPassing = 10 * time.Millisecond
)

// insider is a caller that waits for another one of the same process.
type insider struct {
	lock  *lock
	ready chan struct{} // its turn has come
	lease *Lease        // its section then; nil: it must ask the masters
}

// tenureEvent is what happens to a tenure.
type tenureEvent struct {
	kind    tenureEventKind
	ctx     context.Context // callerCame
	lock    *lock           // callerCame: of its handle
	tries   bool            // callerCame: by TryLock
	caller  *insider        // callerLeft
	section *Lease          // sectionEnded
	lease   *Lease          // leaseAcquired, leaseEnded
	others  others          // leaseAcquired
	value   string          // othersWait: of the lease that the master has

	now     drift.Instant // when it happens
	expired bool          // no validity of the tenure's lease is left
	cause   error         // leaseAcquired, leaseEnded: why it has ended; nil: it has not
}

type tenureEventKind uint8

const (
	callerCame     tenureEventKind = iota // to lock
	callerLeft                            // a caller that has joined the line gives up
	leaseAcquired                         // a caller has asked the masters
	leaseRefused                          // the same, in vain
	sectionEnded                          // by Unlock, or else
	othersWait                            // a master says that another process waits
	messagesMissed                        // what a master said may not have reached us
	leaseEnded                            // the masters' lease: lost, expired, closed
	timerFired                            // the lock may have rested for long enough
	leaseReleased                         // its release was handed to all nodes
	nobodyNeeds                           // a test wants back the locks that rest
)

// others is whether other processes wait for a lease that a caller has acquired.
type others uint8

const (
	noneYet others = iota // a master tells of those that come
	perhaps               // some may have queued before
	some                  // some have, and no master tells of them again
)

// tenureEffects are what follows from an event.
type tenureEffects struct {
	section *Lease   // for who came, asked, or wakes
	asks    bool     // callerCame: it asks the masters
	joined  *insider // callerCame: it waits; without a section, asks and this it is refused
	wakes   *insider // its turn has come
	drops   *Lease   // a section that its caller does not take
	ends    *Lease   // a section whose lease has ended
	cause   error    // why
	renew   *Lease   // now: the answer says whether others wait
	release *Lease   // to the masters
	queue   bool     // before that: callers of this client wait behind the others (L78)

	asked bool          // callerCame, callerLeft: another caller asks the masters
	rest  time.Duration // set the timer; zero: do not
}

// step is the whole tenure: what an event does to its state, and what follows. It neither sends, nor
// blocks, nor reads a clock. The mutex of the tenures is held.
//
// In the table, "next" is that the first in line asks the masters: sought; without a line: away. TryLock
// is refused where others wait, but for the first that comes while the lock is leaving.
//
//	event \ state       away  sought            used                 resting               leaving
//	caller came         ask   wait              wait                 use; expired: leave   wait
//	one in line left    -     off the line      off the line         -                     off the line
//	the served one left -     -                 drop its section     -                     -
//	the next one left   -     next              -                    -                     -
//	acquired            -     use; ended: next  -                    -                     -
//	refused             -     next              -                    -                     -
//	section ended       -     -                 pass, rest or leave  -                     -
//	others wait         -     doubt             want                 leave                 -
//	missed              -     doubt             renew                renew                 -
//	lease ended         -     -                 end section, next    next                  -
//	timer               -     -                 -                    leave                 -
//	released            -     -                 -                    -                     next
//	nobody needs        -     -                 -                    leave                 -
func (t *tenure) step(e *tenureEvent) (fx tenureEffects) {
	switch e.kind {
	case callerCame:
		t.come(e, &fx)
	case callerLeft:
		t.withdraw(e, &fx)
	case leaseAcquired:
		t.begin(e, &fx)
	case leaseRefused:
		t.next(&fx)
	case sectionEnded:
		if t.section == e.section {
			t.section = nil
			t.over(e, &fx)
		}
	case othersWait:
		t.want(e, &fx)
	case messagesMissed:
		t.doubt = t.doubt || t.state == sought
		fx.renew = t.lease
	case leaseEnded:
		if t.lease == e.lease {
			t.end(e.cause, &fx)
		}
	case timerFired:
		t.timed = false
		if t.state == resting {
			t.rest(e, &fx)
		}
	case leaseReleased:
		t.next(&fx)
	case nobodyNeeds:
		if t.state == resting {
			t.leave(&fx)
		}
	}
	return fx
}

// come lets a caller use a lock that rests, ask for one that is not here, or wait.
func (t *tenure) come(e *tenureEvent, fx *tenureEffects) {
	switch {
	case t.state == away:
		t.state, fx.asks = sought, true
		return
	case t.state == resting && !e.expired:
		t.state = used
		return
	case t.state == resting: // it ends now, or might be valid again when our clock is set back (L34)
		t.leave(fx)
	case e.tries && (t.state != leaving || len(t.line) > 0):
		fx.asked = t.state == sought
		return
	}
	fx.joined = &insider{lock: e.lock, ready: make(chan struct{}, 1)}
	t.line = append(t.line, fx.joined)
}

// withdraw takes a caller out of the line. If its turn had come, the next one is.
func (t *tenure) withdraw(e *tenureEvent, fx *tenureEffects) {
	switch i := slices.Index(t.line, e.caller); {
	case i >= 0:
		t.line = slices.Delete(t.line, i, i+1)
		fx.asked = t.state == sought
	case e.caller.lease != nil:
		fx.drops = e.caller.lease
	default:
		t.next(fx)
	}
}

// begin gives the caller that has asked a section of the lease, unless that has ended already.
func (t *tenure) begin(e *tenureEvent, fx *tenureEffects) {
	if e.cause != nil {
		t.doubt = false
		t.next(fx)
		return
	}
	t.state, t.lease, t.wanted = used, e.lease, nil
	switch {
	case e.others == some:
		t.wanted = &demand{since: e.now}
	case e.others == perhaps, t.doubt:
		fx.renew = t.lease
	}
	t.doubt = false
}

// over passes the lock to the next caller of this process, gives it back, or lets it rest.
func (t *tenure) over(e *tenureEvent, fx *tenureEffects) {
	switch d := t.wanted; {
	case e.expired, d != nil && (len(t.line) == 0 || d.passed >= mostPassed || e.now.Sub(d.since) >= longestPassing):
		t.leave(fx)
		return
	case len(t.line) == 0:
		t.state, t.rested = resting, e.now
		idle := e.section.lock.idle()
		if !t.timed || idle < t.idle {
			t.timed, fx.rest = true, idle
		}
		t.idle = idle
		return
	case d != nil:
		d.passed++
	}
	fx.wakes = t.first()
}

// rest goes on until the lock has rested for long enough.
func (t *tenure) rest(e *tenureEvent, fx *tenureEffects) {
	if left := t.idle - e.now.Sub(t.rested); left > 0 {
		t.timed, fx.rest = true, left
		return
	}
	t.leave(fx)
}

// want notes that another process waits for the lock.
func (t *tenure) want(e *tenureEvent, fx *tenureEffects) {
	switch {
	case t.state == sought:
		t.doubt = true
	case t.lease == nil || values.ID(t.lease.value) != values.ID(e.value): // of an earlier lease
	case t.wanted == nil:
		t.wanted = &demand{since: e.now}
		if t.state == resting {
			t.leave(fx)
		}
	}
}

// leave gives the lock back to the masters.
func (t *tenure) leave(fx *tenureEffects) {
	fx.release, fx.queue = t.lease, t.wanted != nil
	t.state, t.lease = leaving, nil
}

// end ends the section of a lease that has ended.
func (t *tenure) end(cause error, fx *tenureEffects) {
	fx.ends, fx.cause = t.section, cause
	t.lease, t.section = nil, nil
	t.next(fx)
}

// next has the first caller in line ask the masters.
func (t *tenure) next(fx *tenureEffects) {
	t.state = away
	if len(t.line) > 0 {
		t.state, fx.wakes = sought, t.first()
	}
}

func (t *tenure) first() *insider {
	w := t.line[0]
	t.line[0] = nil
	t.line = t.line[1:]
	return w
}
