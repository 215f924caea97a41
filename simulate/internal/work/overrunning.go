package work

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

// A caller whose lock has StopWithin may work on when its context has ended, until it is stopped.

// deadline has the work of an action stopped, if the action wants that. It returns nil if not.
func (t *Work) deadline(p *promises.Caller, a *plan.Action) *promises.Deadline {
	if a.Grace == 0 {
		return nil
	}
	d := p.Deadline(a.Grace)
	a.Stop = d.Stop
	return d
}

// until has d watch the work under the lock.
func (h *grip) until(d *promises.Deadline) {
	if d != nil {
		h.deadline = d
		d.Holds(h.claim)
	}
}

// overruns works on in steps for a while.
func (t *Work) overruns(p *promises.Caller, a plan.Action, d *promises.Deadline) {
	if d == nil {
		return
	}
	for began := p.Clock().Monotonic(); !d.Stopped && p.Clock().Monotonic()-began < a.Overrun; {
		d.Step()
		p.During(d.Ends, p.Client.Dice.Spread(100*time.Microsecond, 20*time.Millisecond))
	}
}

// keeping counts a lock of the client until the work under d is over: its keys
// stay until then. The caller calls done.
func keeping(p *promises.Caller, d *promises.Deadline) (done func()) {
	if d == nil {
		return func() {}
	}
	p.Client.Leases++
	return func() { p.Client.Leases-- }
}
