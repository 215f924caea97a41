package simulate

import (
	"slices"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// This file makes faults happen in a running trial.

// begin makes the fault happen now. It returns a function that ends the fault, or
// nil if there is nothing to end.
func (t *trial) begin(f *Fault) (end func()) {
	t.stats.Faults[f.Kind]++
	switch f.Kind {
	case Restart, RestartEmpty, RestartSnapshot, RestartPartial, Failover:
		return t.restart(f)
	case Slow, Reset, CutOut, CutIn, Partition:
		return t.disturb(f)
	case Follow:
		return t.follow(f)
	case ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate:
		return t.troubleClient(f, t.clients[f.Client])
	}
	if f.Kind == Init {
		if t.config.unsafeGuard.InitBeside {
			t.declareNew()
		} else {
			t.operate()
		}
		return nil
	}
	if f.Kind == Regroup && f.Node < 0 {
		t.move()
		return nil
	}
	var ends []func()
	for i, m := range t.masters {
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

// restart takes a master down. It comes back with what is left of its keys.
func (t *trial) restart(f *Fault) (end func()) {
	m := t.masters[f.Node]
	if m.host.down {
		return nil
	}
	keys := m.keys.Copy()
	switch f.Kind {
	case RestartEmpty:
		keys = map[string]*masters.Entry{}
	case RestartPartial:
		keys = m.partly(keys, f.Size)
	case RestartSnapshot, Failover:
		keys = t.snapshots[f]
	}
	m.kill(f.Silent)
	life := m.host.life
	return func() {
		if m.host.down && m.host.life == life {
			m.start(keys)
		}
	}
}

// follow makes a master a replica, and a master again when the fault ends.
func (t *trial) follow(f *Fault) (end func()) {
	m := t.masters[f.Node]
	if m.host.down || m.keys.Replica {
		return nil
	}
	m.follow(t.snapshots[f])
	life := m.host.life
	return func() {
		if m.host.life == life {
			m.promote()
		}
	}
}

// disturb strikes the links between clients and masters.
func (t *trial) disturb(f *Fault) (end func()) {
	var hit []*cable
	for i, c := range t.clients {
		for j, w := range c.wires {
			if (f.Client == i || f.Client < 0) && (f.Node == j || f.Node < 0) {
				hit = append(hit, w)
			}
		}
	}
	for _, w := range hit {
		switch f.Kind {
		case Slow:
			w.slow += f.Size
		case Reset:
			w.reset()
		case CutOut:
			w.cut[outward]++
		case CutIn:
			w.cut[inward]++
		case Partition:
			w.cut[outward]++
			w.cut[inward]++
		}
	}
	return func() {
		for _, w := range hit {
			w.mended = t.world.now
			switch f.Kind {
			case Slow:
				w.slow -= f.Size
			case CutOut:
				w.mend(outward)
			case CutIn:
				w.mend(inward)
			case Partition:
				w.mend(outward)
				w.mend(inward)
			}
		}
	}
}

func (t *trial) troubleMaster(f *Fault, m *master) (end func()) {
	switch f.Kind {
	case Pause:
		return stopFor(m.host, m.host.pause, m.host.resume)
	case Errors:
		m.refuses = wire.Server(f.Code + " simulated")
		return func() { m.refuses, m.answers = nil, t.world.now }
	case Step:
		m.host.clock.step(f.Size)
		if f.Size > 0 {
			m.check.stepped(m)
		}
	case Rate:
		m.host.clock.setRate(f.Rate)
		return func() { m.host.clock.setRate(0) }
	case Freeze:
		m.host.clock.freeze()
		return m.host.clock.thaw
	case Flush:
		m.keys.Flush()
		m.check.forgot(m, true)
		m.suspected()
	case Evict: // whatever has a TTL, as volatile-lru does
		for _, k := range sortedKeys(m.keys.Keys) {
			if m.keys.Keys[k].Until != 0 {
				delete(m.keys.Keys, k)
			}
		}
		m.check.forgot(m, false)
	case Regroup:
		m.regroup(groupOf(t.masters), t.config.guard(1).Hold)
	case Delete: // only the locks
		for _, k := range sortedKeys(m.keys.Keys) {
			if masters.IsLock(k) {
				delete(m.keys.Keys, k)
			}
		}
		m.check.changed(m, false)
	}
	return nil
}

func (t *trial) troubleClient(f *Fault, c *client) (end func()) {
	switch f.Kind {
	case ClientCrash:
		if f.Closes {
			return t.shutDown(c)
		}
		if c.host.down {
			return nil
		}
		t.crash(c)
		return func() { t.revive(c) }
	case ClientPause:
		return stopFor(c.host, c.host.pause, c.host.resume)
	case ClientSuspend:
		return stopFor(c.host, c.host.suspend, c.host.wake)
	case ClientStep:
		c.host.clock.step(f.Size)
		if f.For > 0 {
			return func() { c.host.clock.step(-f.Size) }
		}
	case ClientRate:
		c.host.clock.setRate(f.Rate)
		return func() { c.host.clock.setRate(0) }
	}
	return nil
}

// stopFor stops a host. It goes on when the fault ends, unless it crashed meanwhile.
func stopFor(h *host, stop, resume func()) (end func()) {
	if h.down {
		return nil
	}
	stop()
	life := h.life
	return func() {
		if h.life == life {
			resume()
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
