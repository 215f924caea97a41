package fleet

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// isAt reports whether the code of the client is there now.
func (c *Client) isAt(where plan.Stops) bool {
	called, timing := c.World.Running != nil, c.World.Timing
	switch where {
	case plan.InCalls:
		return called
	case plan.InTimers:
		return !called && timing
	case plan.InReplies:
		return !called && !timing
	case plan.InRenewals:
		return !called && c.Handling == wire.OpExtend
	case plan.InAsks:
		return !called && c.Handling == wire.OpAsk
	}
	return true
}

// step may stop what the client is doing. It is called wherever its code asks a
// master, locks a mutex or has unlocked one.
func (c *Client) step() {
	w := c.World
	if c.Preemption.Every == 0 || c.Host.Down {
		return
	}
	p := w.Running
	if p != nil && !p.Calling || p == nil && w.Active != c.Host {
		return
	}
	if !c.isAt(c.Preemption.Where) {
		return
	}
	if c.untilStop--; c.untilStop > 0 {
		return
	}
	c.untilStop = 1 + c.stopDice.Below(2*c.Preemption.Every)
	d := c.stopDice.Spread(5*time.Microsecond, c.Preemption.Short)
	if c.stopDice.Chance(c.Preemption.LongOdd) && !c.Watch.Healed() {
		d = c.stopDice.Spread(c.Preemption.Short, c.Preemption.Long)
	}
	c.Stats.Stops++
	c.stall()
	if d > c.Config.NodeTimeout/2 {
		w.Rough = max(w.Rough, w.Now+d) // its requests may come to nothing
	}
	if p != nil {
		p.Rest(d)
		return
	}
	c.Host.Rest(d)
}

// stall has the whole process stand still in some schedules, with a thread stopped in the
// middle. That thread goes on first afterwards, with an old reading of the clock.
func (c *Client) stall() {
	if c.Preemption.Stalls > 0 && !c.Watch.Healed() && c.stopDice.Chance(c.Preemption.Stalls) {
		c.Watch.Strike(&plan.Fault{Kind: plan.ClientPause, At: c.World.Now, For: c.stopDice.Spread(c.Config.TTL/4, 2*c.Config.TTL), Client: c.Index, Node: -1})
	}
}

// Uneven returns the Uneven count of the client's clock when the latest lease of the running
// process began. If the process was stopped since it last waited, that is the count from then.
func (c *Client) Uneven() int {
	if c.Preempted() {
		return c.Host.World.Running.Uneven
	}
	return c.Host.Clock.Uneven
}

// Preempted reports whether the running process was stopped since it last waited. If so, the
// state that it saw then may be out of date.
func (c *Client) Preempted() bool {
	p := c.Host.World.Running
	return p != nil && p.Rested
}
