package simulate

import (
	"fmt"

	"github.com/quorumlock/quorumlock/redlock"
)

// A client that is in no call, holds no lease, is connected to a master and owes
// it nothing has no key there. That is looked for all the time: a key that stays
// for a TTL and then goes is gone when a schedule ends.

// leftovers looks for keys of a client that should have none.
func (k *checker) leftovers(c *client) {
	if !c.mayHaveKeys || !c.idle() {
		return
	}
	c.mayHaveKeys = false
	me := c.me()
	for _, b := range k.ledger.books {
		for i := range c.links {
			s := &b.at[i]
			if s.owner != me || s.value == "" || s.astray || k.trial.world.now >= s.ends {
				continue
			}
			if !c.links[i].settled() {
				c.mayHaveKeys = true
				continue
			}
			s.astray = true // told once
			k.report(Violation{
				Kind: Leftover,
				What: fmt.Sprintf("%s still has a key of %s, which holds nothing, is connected and owes it nothing",
					k.trial.masters[i].host.name, c.host.name),
				Clients: []int{c.index},
			})
		}
	}
}

// unpaid looks for releases that were not delivered although all has been well
// for a while.
func (k *checker) unpaid() {
	for _, c := range k.trial.clients {
		if c.isStranger() {
			continue // no master listens to it any more; its keys expire
		}
		for _, l := range c.links {
			if n := l.owed(); n > 0 {
				k.report(Violation{
					Kind:    Leftover,
					What:    fmt.Sprintf("%s has not delivered %d releases to %s although all is well again", c.host.name, n, l.Addr()),
					Clients: []int{c.index},
				})
			}
		}
	}
}

// idle reports whether no code of the library is running or waiting on the
// client, and no lease is held.
func (c *client) idle() bool {
	if c.host.down || c.host.rests() || c.leases > 0 {
		return false
	}
	for _, p := range c.host.procs {
		if p.ctx != nil && !p.own {
			return false
		}
	}
	return true
}

// settled reports whether the master has got everything that was sent, on
// whatever connection, and is owed nothing.
func (l *link) settled() bool {
	return l.wire.busy <= l.world.now && !l.wire.holds() && l.quiet()
}

// quiet reports whether the master is connected, nothing is under way, and
// nothing is owed.
func (l *link) quiet() bool {
	return l.greeted && len(l.conn.flight) == 0 && l.pending.Len() == 0
}

// owed returns how many releases the master was not told of.
func (l *link) owed() int { return l.pending.Len() }

// count keeps the number of leases that the client holds.
func (c *client) count(e redlock.Event) {
	switch e.Kind {
	case redlock.LockAcquired:
		c.leases++
		c.gotOn = c.world.now
	case redlock.LeaseReleased, redlock.LeaseLost:
		c.leases--
	}
}
