package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// A process that ends in good order closes its client first. The client's leases end, its calls
// return, and no reachable master keeps anything of the client.

// shutDown closes a client, and has its process start again later, whether Close has
// returned by then or not.
func (t *trial) shutDown(c *promises.Client) (end func()) {
	if c.Host.Down || c.Closing {
		return nil
	}
	c.Closing = true
	t.start(c, c.Index, t.close)
	life := c.Host.Life
	return func() {
		if c.Host.Life != life {
			return // it crashed meanwhile
		}
		t.crash(c)
		t.revive(c)
	}
}

// closeAll closes every client that there is, when the work is done.
func (t *trial) closeAll() {
	w := t.World
	for _, c := range t.Clients {
		if !c.IsStranger() && c.API != nil {
			t.start(c, c.Index, t.close)
		}
	}
	w.Run(w.Now+t.patience(), t.idle)
	switch {
	case t.seen():
	case !t.idle():
		t.stuck("has not closed its client although all is well again")
	default:
		w.Run(t.lastArrival(), t.seen)
	}
}

// close closes the client of a process, and checks what remains of the client.
func (t *trial) close(p *promises.Caller) {
	c, began := p.Client, t.World.Now
	me, born := c.Me(), c.Born
	idle, reached, asked, released := c.Idle(), c.ReachesAll(), c.Asked, c.Released
	for _, l := range c.Links {
		idle = idle && l.Quiet() // or what is answered now may have to be released
	}
	t.Stats.Closed++
	patience := time.Duration(len(c.Masters))*t.Config.NodeTimeout + time.Duration(len(c.APIs))*closeWait + fleet.CloseGrace + t.longestGrace() // each may answer just before it is given up
	err := t.Ask(p, "Close", patience, c.Close)
	if c.Host.Life != me.Life || c.Host.Rests() {
		return
	}
	for _, cl := range t.Check.Claims {
		if cl.Client == c && (cl.Hold.Valid() || !promises.HasEnded(cl.Hold)) {
			p.Fail("%s has closed its client, and a lease of %q has not ended", p.Name(), cl.Names[0])
		}
	}
	// Close may be stopped in the middle before the client is closed. What calls that come then have
	// asked for, they must release.
	if n := c.Released - released; idle && t.Config.Lock != CachedLock && !t.Apart() && n > 0 && n == c.Asked-asked {
		p.Fail("%s held nothing, and has sent %d releases when it closed its client", p.Name(), n)
	}
	if err == nil && c.Config.Rung == nil {
		t.Check.Remains(me, born)
	}
	if !reached || t.World.Rough > began {
		return
	}
	p.Sleep(context.Background(), t.Check.Trips())
	for _, o := range c.Host.Procs {
		if o != p.Routine && o.Calling && !o.Rested && !c.Host.Rests() {
			p.Fail("%s has closed its client, and %s is still in a call", p.Name(), o.Name())
		}
	}
	arrived := t.World.Now
	for _, w := range c.Wires {
		arrived = max(arrived, w.Busy)
	}
	t.World.At(arrived+1, nil, world.Action(func() {
		// What stands still now may do so since the very instant at which Close began.
		hangs := slices.ContainsFunc(t.Masters, func(m *fleet.Master) bool { return m.Host.Stopped() })
		if t.World.Rough <= began && !hangs {
			if err != nil {
				p.Fail("%s has closed its client where nothing was wrong: %v", p.Name(), err)
			}
			t.Check.Remains(me, born)
		}
	}))
}

// longestGrace is how long Close waits at most for work with StopWithin.
func (t *trial) longestGrace() (longest time.Duration) {
	for _, list := range t.Schedule.Actions {
		for _, a := range list {
			longest = max(longest, a.Grace)
		}
	}
	return longest
}

// closeWait is how long Close waits for masters that do not confirm.
const closeWait = 3 * time.Second
