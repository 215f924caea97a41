package promises

import (
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Work under a lock with StopWithin ends before anybody else can have the lock: it ends by itself
// or it is stopped. So no step of the work comes after the end of the validity, nor when the lease
// is known to be lost, nor when another client has got the lock.

// Deadline is what the checks see of the work under one lease.
type Deadline struct {
	process *Caller
	grace   time.Duration
	claim   *Claim // nil: not locked yet, or by Do
	over    bool   // Unlock or Do has returned
	Stopped bool
	Ends    chan struct{} // closed when the work is stopped
}

// Deadline begins to watch the work of a call.
func (p *Caller) Deadline(grace time.Duration) *Deadline {
	return &Deadline{process: p, grace: grace, Ends: make(chan struct{})}
}

// Holds notes the lock of the work.
func (d *Deadline) Holds(cl *Claim) { d.claim, cl.deadline = cl, d }

// occupies reports whether others wait for the claim: its lease has not ended, or its work has not.
func (cl *Claim) occupies() bool {
	return !cl.Ended || cl.deadline != nil && !cl.deadline.Stopped
}

// Over notes that the work had ended before a call that has now returned.
func (d *Deadline) Over() { d.over = true }

// Stop stops the work: at most once, and not before it must.
func (d *Deadline) Stop(cause error) {
	p, cl := d.process, d.claim
	if d.Stopped {
		p.Fail("the work of %s is stopped a second time: %v", p.Name(), cause)
		return
	}
	d.Stopped = true
	close(d.Ends)
	p.Scene.Stats.Stopped++
	if p.Client.Preemption.Every > 0 {
		return // the caller may have unlocked in between
	}
	if d.over {
		p.Fail("the work of %s is stopped, and it has unlocked before: %v", p.Name(), cause)
	}
	if cl == nil {
		return
	}
	if !HasEnded(cl.Hold) {
		p.Fail("the work of %s is stopped before its context has ended: %v", p.Name(), cause)
	}
	since := p.Scene.World.Now - cl.End
	// A client that does not know yet how its own clock runs counts on less of every validity (S60).
	least := time.Duration(float64(d.grace) * 0.7 / max(cl.pace, p.Client.Group.Pace()))
	if errors.Is(cause, redlock.ErrExpired) && cl.Ended && cl.End > p.Host.Resumed && cl.uneven == p.Host.Clock.Uneven && since < least-lead && !p.Scene.doubtful() {
		p.Fail("the work of %s is stopped %v after its context has ended, and its grace is %v", p.Name(), since, d.grace)
	}
}

// Step is called for every step of the work.
func (d *Deadline) Step() {
	p, cl := d.process, d.claim
	if d.Stopped || cl == nil || p.Host.Hangs() {
		return
	}
	now, host := p.Scene.World.Now, p.Host
	allowed := Punctual
	if cl.uneven != host.Clock.Uneven {
		allowed += nap
	}
	last := cl.End
	switch grace := d.grace + d.grace/50; { // clocks drift
	case errors.Is(cl.Hold.(interface{ Err() error }).Err(), redlock.ErrLost):
	case cl.uneven != host.Clock.Uneven:
		// A clock that is set forward ends the lease early. When it is set back, nobody else can have
		// the lock for as long as before.
		last = max(cl.End, cl.intended) + grace
	default:
		last = cl.End + grace
	}
	last = max(last, host.Resumed)
	p.Check(tally.WorkStops, !cl.Ended || now-last <= allowed,
		"%s works on, %v after the validity of its lease of %q is over, and nobody stops it", p.Name(), now-last, cl.Names[0])
	p.Check(tally.WorkStops, cl.followed == nil || now-max(cl.overtaken, host.Resumed) <= allowed,
		"%s works on under its lock of %q, and another client has got that", p.Name(), cl.Names[0])
}

// doubtful reports whether a master may have lost its memory, or seems to have lost it: then
// its leases are renewed immediately.
func (t *Scene) doubtful() bool {
	for _, m := range t.Masters {
		if m.Lapses > 0 || m.Host.Life > 0 || m.Host.Clock.Uneven > 0 {
			return true
		}
	}
	return t.Stats.Faults[plan.Rate] > 0
}
