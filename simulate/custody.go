package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// What every master does with the locks that it stores. Overlaps are rare even
// where a protection is missing: it takes two clients at the right places in the
// right moment. These promises break long before that, with one client and one
// master.

// ran is told of a command that a master has run, and not refused: by a
// connection that its client had closed, or not.
func (k *checker) ran(m *master, by *client, cmd *node.Command, closed bool) {
	if k.trial.config.rung != nil {
		return // naive locks promise nothing
	}
	if k.trial.config.Lock.isFair() {
		k.queuedAt(m, cmd)
	}
	if queues := cmd.Op == node.OpAsk || cmd.Op == node.OpAcquire && k.trial.config.Lock.isFair(); queues && (closed || len(k.strays) > 0) {
		waiter, _ := splitValue(cmd.Args[0])
		k.strays[stray{m.index, waiter}] = closed
	}
	for _, key := range cmd.Keys {
		if !isLock(key) {
			continue
		}
		b := k.ledger.book(key)
		s := &b.at[m.index]
		e := m.keys.find(key)
		if e == nil && s.value == "" || e != nil && e.value == s.value && e.until == s.until && !k.renewed(m, s, e, cmd) {
			continue
		}
		k.touched = true
		if s.value != "" && (e == nil || e.value != s.value) {
			k.ended(m, s, by)
		}
		lost := closed
		if e != nil && e.value != s.value && gives(cmd.Op) {
			if lost = closed || !k.believed(m, e); !lost {
				k.granted(m, s, e)
			}
		}
		before := s.value
		s.put(e, k.trial.world.now, k.relied(m, e))
		if s.owner.client >= 0 && s.value != before {
			k.trial.clients[s.owner.client].mayHaveKeys = true
		}
		s.astray = s.astray && s.value == before || (lost || k.ghost(m, s)) && s.value != before
	}
}

// believed reports whether the client that has been given a lock would count
// that. What it does not believe now, it does not believe later: only if its
// quarantine ends meanwhile, and by then so has what the master forgot.
func (k *checker) believed(m *master, e *entry) bool {
	o := ownerOf(e.value)
	if o.client < 0 {
		return true
	}
	links := k.trial.clients[o.client].links
	return m.index >= len(links) || links[m.index].believes(m.keys.proof(markerKey))
}

// ghost reports whether a master gave a lock to who does not wait for it any more:
// it was registered by a command from a connection that was closed.
func (k *checker) ghost(m *master, s *shelf) bool {
	waiter, _ := splitValue(s.value)
	return s.owner.client >= 0 && (k.strays[stray{m.index, waiter}] || k.trial.clients[s.owner.client].idle())
}

// stray is a waiter that was registered at a master by a connection that its client
// had closed. Its release may have come before that.
type stray struct {
	master int
	waiter string
}

// gives reports whether a command can give the lock to somebody.
func gives(op node.Op) bool {
	return op == node.OpAcquire || op == node.OpAsk || op == node.OpRelease
}

// renewed reports whether a command that left the key as it was has promised it
// for longer than was noted: a master whose clock stands still extends it to the
// same instant. A clock that was set back keeps the key for longer, too, but
// nobody was promised that.
func (k *checker) renewed(m *master, s *shelf, e *entry, cmd *node.Command) bool {
	return cmd.Op == node.OpExtend && cmd.Args[0] == e.value && k.trial.world.now+promised(k.relied(m, e)) > s.ends
}

// relied is for how long somebody may rely on the key that a master stores: as
// long as it is kept, but no longer than the longest TTL. A clock that was set
// back makes the registration of a waiter last for longer, and with it the key.
func (k *checker) relied(m *master, e *entry) time.Duration {
	cfg, kept := k.trial.config, m.keeps(e)
	if e == nil || cfg.RestartGuard <= 0 {
		return kept // any TTL may be asked for
	}
	return min(kept, max(cfg.RestartGuard, cfg.ttlOf(ownerOf(e.value).client)))
}

// ended notes that a command, or its TTL, has taken a key away.
func (k *checker) ended(m *master, s *shelf, by *client) {
	if s.until != 0 && m.keys.millis() > s.until {
		s.lose(k.trial.world.now, true) // expired before its time, if that is still to come
		return
	}
	for _, cl := range k.claims {
		if cl.value == s.value && cl.hold.Valid() && !cl.shared() { // who reads from now on has no lock
			k.report(Violation{
				Kind:    OwnDelete,
				What:    fmt.Sprintf("%s deleted the key of a lease of %s at %s while it was valid", by.host.name, cl.client.host.name, m.host.name),
				Clients: []int{by.index, cl.client.index},
			})
		}
	}
}

// granted looks for what the master has promised before and forgotten.
func (k *checker) granted(m *master, s *shelf, e *entry) {
	now := k.trial.world.now
	s.lost = slices.DeleteFunc(s.lost, func(p promise) bool { return p.ends <= now })
	for _, p := range s.lost {
		if p.guarded && p.value != e.value {
			k.report(Violation{
				Kind: GaveAway,
				What: fmt.Sprintf("%s granted the lock to %s while it was promised to %s for another %v",
					m.host.name, clientName(ownerOf(e.value).client), clientName(p.owner.client), short(p.ends-now)),
				Clients: []int{ownerOf(e.value).client, p.owner.client},
			})
			return
		}
	}
}

// forgot is told when a fault has taken a master's keys. Where a fault is guarded
// against, nobody may be granted what is forgotten.
func (k *checker) forgot(m *master, guarded bool) {
	k.tokens.lost = true
	k.changed(m, guarded)
}

// changed is told when a fault has changed a master's locks, and not its counters.
func (k *checker) changed(m *master, guarded bool) {
	now := k.trial.world.now
	m.lapses++
	m.lapsed = now
	m.stale = m.keys.memory(markerKey)
	m.keys.changes++
	k.touched = true
	k.lookAtLines(m)
	for _, b := range k.ledger.books {
		s := &b.at[m.index]
		e := m.keys.find(b.name)
		if e != nil && e.value == s.value && e.until >= s.until {
			continue
		}
		s.lose(now, guarded)
		s.put(e, now, k.relied(m, e))
		s.astray = e != nil
	}
}

// stepped is told when a master's clock was set forward: its keys end early.
func (k *checker) stepped(m *master) {
	m.lapses++
	k.touched = true
	for _, b := range k.ledger.books {
		b.at[m.index].lose(k.trial.world.now, true)
	}
}

// backing reports a valid lease whose key is not kept for long enough by a
// quorum of masters. Time alone cannot bring that about, so it is looked for
// when a master's keys have changed, or the lease's validity.
func (k *checker) backing(cl *claim) {
	if cl.unbacked || cl.value == "" || !cl.stored() {
		return
	}
	left := cl.hold.Until().Sub(cl.client.host.clock.Now())
	if left <= 0 {
		return
	}
	keep := 0
	for _, m := range cl.client.masters {
		if k.keeps(m, cl, left) {
			keep++
		}
	}
	if keep >= quorum.Size(len(cl.client.masters)) {
		return
	}
	cl.unbacked = true
	k.report(Violation{
		Kind: Unbacked,
		What: fmt.Sprintf("%s holds %q for another %v, and only %d of %d masters keep it for that long",
			cl.client.host.name, cl.names[0], short(left), keep, len(cl.client.masters)),
		Clients: []int{cl.client.index},
	})
}

// keeps reports whether a master keeps all that a claim is about for long enough.
func (k *checker) keeps(m *master, cl *claim, left time.Duration) bool {
	for _, name := range cl.names {
		s := &k.ledger.book(name).at[m.index]
		kept := s.value == cl.value && m.left(s.until) >= worst(left)
		if !kept && !s.forgot(cl.value, k.trial.world.now+latest(left)) {
			return false
		}
	}
	return true
}

// forgot reports whether the master has lost the value by a fault, and may grant
// the lock to nobody else until the given instant. What no guard can see is no
// fault of ours: only a clash counts then.
func (s *shelf) forgot(value string, until time.Duration) bool {
	kept := s.value == "" || s.value == value || s.astray
	return slices.ContainsFunc(s.lost, func(p promise) bool {
		return p.value == value && p.ends >= until && (kept || !p.guarded)
	})
}
