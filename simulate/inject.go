package simulate

import (
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file makes faults happen in a running trial.

// begin makes the fault happen now. It returns a function that ends the fault, or
// nil if there is nothing to end.
func (t *trial) begin(f *plan.Fault) (end func()) {
	if t.Apart() && f.Forgets() && !t.letForget(f.Node) {
		return nil
	}
	t.Stats.Faults[f.Kind]++
	switch f.Kind {
	case plan.Restart, plan.RestartEmpty, plan.RestartSnapshot, plan.RestartPartial, plan.Failover:
		return t.restart(f)
	case plan.Slow, plan.Reset, plan.CutOut, plan.CutIn, plan.Partition:
		return t.disturb(f)
	case plan.Follow:
		return t.follow(f)
	case plan.ClientCrash, plan.ClientPause, plan.ClientSuspend, plan.ClientStep, plan.ClientRate:
		return t.troubleClient(f, t.Clients[f.Client])
	}
	if f.Kind == plan.Init {
		if t.Config.Lacks.InUse {
			t.declareNew()
		} else {
			t.operate()
		}
		return nil
	}
	if f.Kind == plan.Regroup && f.Node < 0 {
		t.move()
		return nil
	}
	if f.Kind == plan.Spread {
		return t.spread(f)
	}
	var ends []func()
	for i, m := range t.Masters {
		if f.Node == i || f.Node < 0 {
			if end := t.troubleMaster(f, m); end != nil {
				ends = append(ends, end)
			}
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// restart takes a master down. The master comes back with the keys that the fault leaves.
func (t *trial) restart(f *plan.Fault) (end func()) {
	m := t.Masters[f.Node]
	if m.Host.Down {
		return nil
	}
	keys := m.Keys.Copy()
	switch f.Kind {
	case plan.RestartEmpty:
		keys = map[string]*masters.Entry{}
	case plan.RestartPartial:
		keys = m.Partly(keys, f.Size)
	case plan.RestartSnapshot, plan.Failover:
		keys = t.snapshots[f]
	}
	m.Kill(f.Silent)
	life := m.Host.Life
	return func() {
		if m.Host.Down && m.Host.Life == life {
			m.Start(keys)
		}
	}
}

// follow makes a master a replica, and a master again when the fault ends.
func (t *trial) follow(f *plan.Fault) (end func()) {
	m := t.Masters[f.Node]
	if m.Host.Down || m.Keys.Replica {
		return nil
	}
	m.Follow(t.snapshots[f])
	life := m.Host.Life
	return func() {
		if m.Host.Life == life {
			m.Promote()
		}
	}
}

// disturb strikes the links between clients and masters.
func (t *trial) disturb(f *plan.Fault) (end func()) {
	var hit []*fleet.Cable
	for i, c := range t.Clients {
		for j, w := range c.Wires {
			if (f.Client == i || f.Client < 0) && (f.Node == j || f.Node < 0) {
				hit = append(hit, w)
			}
		}
	}
	for _, w := range hit {
		switch f.Kind {
		case plan.Slow:
			w.Slow += f.Size
		case plan.Reset:
			w.Reset()
		case plan.CutOut:
			w.Cut[fleet.Outward]++
		case plan.CutIn:
			w.Cut[fleet.Inward]++
		case plan.Partition:
			w.Cut[fleet.Outward]++
			w.Cut[fleet.Inward]++
		}
	}
	return func() {
		for _, w := range hit {
			w.Mended = t.World.Now
			switch f.Kind {
			case plan.Slow:
				w.Slow -= f.Size
			case plan.CutOut:
				w.Mend(fleet.Outward)
			case plan.CutIn:
				w.Mend(fleet.Inward)
			case plan.Partition:
				w.Mend(fleet.Outward)
				w.Mend(fleet.Inward)
			}
		}
	}
}

// blinks reports whether a fault would have the only wrong clock go ahead and back again before
// a client has seen it and told the others. None of them could know that keys have ended early (S69).
func (t *trial) blinks(f *plan.Fault, m *fleet.Master) bool {
	c := m.Host.Clock
	switch {
	case !t.Config.Faults.OneClock:
		return false
	case f.Kind == plan.Step && f.Size > 0, f.Kind == plan.Rate && f.Rate > 0:
		return c.Loses()
	case f.Kind == plan.Step, f.Kind == plan.Rate, f.Kind == plan.Freeze:
		return t.World.Now-c.GainedUntil() < 2*guard.HeardWithin || t.restedSince(m, c.GainedUntil())
	}
	return false
}

// restedSince reports whether a client that rests has not looked at a master since an instant; zero:
// never.
func (t *trial) restedSince(m *fleet.Master, then time.Duration) bool {
	return then > 0 && slices.ContainsFunc(t.Clients, func(c *promises.Client) bool {
		return slices.ContainsFunc(c.Links, func(l fleet.Connection) bool {
			link, ok := l.(*fleet.Link)
			return ok && link.Master == m && link.Rested > then && t.World.Now-link.Rested < 2*fleet.Heartbeat
		})
	})
}

func (t *trial) troubleMaster(f *plan.Fault, m *fleet.Master) (end func()) {
	if t.blinks(f, m) {
		return nil
	}
	switch f.Kind {
	case plan.Pause:
		return stopFor(m.Host, m.Host.Pause, m.Host.Resume)
	case plan.Errors:
		m.Refuses = wire.Server(f.Code + " simulated")
		return func() { m.Refuses, m.Answers = nil, t.World.Now }
	case plan.Step:
		m.Host.Clock.Step(f.Size)
		if f.Size > 0 {
			t.Check.Stepped(m)
		}
	case plan.Rate:
		m.Host.Clock.SetRate(f.Rate)
		return func() { m.Host.Clock.SetRate(0) }
	case plan.Freeze:
		m.Host.Clock.Freeze()
		return m.Host.Clock.Thaw
	case plan.Flush:
		m.Keys.Flush()
		t.Check.Forgot(m, true)
		m.Suspected()
	case plan.Evict: // whatever has a TTL, as volatile-lru does
		for _, k := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
			if m.Keys.Keys[k].Until != 0 {
				delete(m.Keys.Keys, k)
			}
		}
		t.Check.Forgot(m, false)
	case plan.Regroup:
		m.Regroup(fleet.GroupOf(t.Masters), t.Config.Guard(1).Hold)
	case plan.Delete: // only the locks
		for _, k := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
			if masters.IsLock(k) {
				delete(m.Keys.Keys, k)
			}
		}
		t.Check.Changed(m, false)
	}
	return nil
}

func (t *trial) troubleClient(f *plan.Fault, c *promises.Client) (end func()) {
	switch f.Kind {
	case plan.ClientCrash:
		if f.Closes {
			return t.shutDown(c)
		}
		if c.Host.Down {
			return nil
		}
		t.crash(c)
		return func() { t.revive(c) }
	case plan.ClientPause:
		t.Check.Stops(c)
		return stopFor(c.Host, c.Host.Pause, c.Host.Resume)
	case plan.ClientSuspend:
		t.Check.Stops(c)
		return stopFor(c.Host, c.Host.Suspend, c.Host.Wake)
	case plan.ClientStep:
		c.Host.Clock.Step(f.Size)
		if f.For > 0 {
			return func() { c.Host.Clock.Step(-f.Size) }
		}
	case plan.ClientRate:
		if c.SkewsAlone(f.Rate) {
			return nil
		}
		c.Host.Clock.SetRate(f.Rate)
		return func() { c.Host.Clock.SetRate(0) }
	}
	return nil
}

// stopFor stops a host. It goes on when the fault ends, unless it crashed meanwhile.
func stopFor(h *world.Host, stop, resume func()) (end func()) {
	if h.Down {
		return nil
	}
	stop()
	life := h.Life
	return func() {
		if h.Life == life {
			resume()
		}
	}
}
