package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// A process that ends in good order closes its client first: its leases end, its callers
// are told, and no master keeps anything of it that can be reached.

// someClose adds clients that close to the faults of a schedule, in half of those where
// clients crash.
func someClose(faults []Fault, dice *stream, cfg *Config) []Fault {
	if !slices.Contains(cfg.Faults.Kinds, ClientCrash) || cfg.drawnFor() != nil || !dice.chance(500) {
		return faults
	}
	for range 1 + dice.below(5) {
		f := cfg.Faults.one(ClientCrash, dice.between(0, cfg.Duration), dice, cfg)
		f.Closes = true
		faults = append(faults, f)
	}
	return byTime(faults)
}

// shutDown closes a client, and has its process start again later, whether Close has
// returned by then or not.
func (t *trial) shutDown(c *client) (end func()) {
	if c.host.down || c.closing {
		return nil
	}
	c.closing = true
	t.start(c, c.index, t.close)
	life := c.host.life
	return func() {
		if c.host.life != life {
			return // it crashed meanwhile
		}
		t.crash(c)
		t.revive(c)
	}
}

// closeAll closes every client that there is, when the work is done.
func (t *trial) closeAll() {
	w := t.world
	for _, c := range t.clients {
		if !c.isStranger() && c.api != nil {
			t.start(c, c.index, t.close)
		}
	}
	w.run(w.now+t.patience(), t.idle)
	switch {
	case t.seen():
	case !t.idle():
		t.stuck("has not closed its client although all is well again")
	default:
		w.run(t.lastArrival(), t.seen)
	}
}

// close closes the client of a process, and looks at what is left of it.
func (t *trial) close(p *Process) {
	c, began := p.client, t.world.now
	me, born := c.me(), c.born
	idle, reached, released := c.idle(), c.reachesAll(), c.released
	t.stats.closed++
	patience := time.Duration(len(c.masters))*t.config.nodeTimeout + closeWait + closeGrace // each may answer just before it is given up
	err := t.ask(p, "Close", patience, c.api.Close)
	if c.host.life != me.Life || c.host.rests() {
		return
	}
	for _, cl := range t.check.claims {
		if cl.client == c && (cl.hold.Valid() || !hasEnded(cl.hold)) {
			p.Fail("%s has closed its client, and a lease of %q has not ended", p.name, cl.names[0])
		}
	}
	if n := c.released - released; idle && n > 0 {
		p.Fail("%s held nothing, and has sent %d releases when it closed its client", p.name, n)
	}
	if err == nil && c.config.rung == nil {
		t.check.remains(me, born)
	}
	if !reached || t.world.rough > began {
		return
	}
	p.Sleep(context.Background(), t.check.trips())
	for _, o := range c.host.procs {
		if o != p && o.calling && !o.rested && !c.host.rests() {
			p.Fail("%s has closed its client, and %s is still in a call", p.name, o.name)
		}
	}
	arrived := t.world.now
	for _, w := range c.wires {
		arrived = max(arrived, w.busy)
	}
	t.world.at(arrived+1, nil, action(func() {
		// What stands still now may do so since the very instant at which Close began.
		hangs := slices.ContainsFunc(t.masters, func(m *master) bool { return m.host.stopped() })
		if t.world.rough <= began && !hangs {
			if err != nil {
				p.Fail("%s has closed its client where nothing was wrong: %v", p.name, err)
			}
			t.check.remains(me, born)
		}
	}))
}

// reachesAll reports whether the client can talk to every master, and owes it nothing.
func (c *client) reachesAll() bool {
	for _, l := range c.links {
		if !l.well() || l.owed() > 0 {
			return false
		}
	}
	return true
}

// gives notes what the client sends to a master.
func (c *client) gives(master int, cmd *wire.Command) {
	if len(cmd.Args) == 0 {
		return // a naive lock, or a scenario that deletes without comparing
	}
	c.sends(master, cmd)
	c.debts.owes(master, cmd)
	c.asked++
	switch cmd.Op {
	case wire.OpRelease:
		c.released++
		delete(c.otherwise, cmd.Args[0])
	case wire.OpExtend:
		if c.preemption.every == 0 { // or it may have begun long ago
			c.renews(cmd)
		}
	case wire.OpRepair:
		if c.preemption.every == 0 {
			c.repairs(cmd)
		}
	}
}

// repairs looks whether a lease is put back that has ended.
func (c *client) repairs(cmd *wire.Command) {
	if cl := c.claimOf(cmd.Args[0]); cl != nil && !cl.hold.Valid() {
		c.blame(fmt.Sprintf("a lease of %q that has ended is put back", cl.names[0]))
	}
}

// renews looks whether the lease may be extended.
func (c *client) renews(cmd *wire.Command) {
	if c.unlocked[cmd.Args[0]] {
		delete(c.unlocked, cmd.Args[0])
		c.blame("a lease is renewed that was unlocked")
	}
}

// closeWait is how long Close waits for masters that do not confirm.
const closeWait = 3 * time.Second

func hasEnded(h hold) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// closeGrace is how long a connection is kept for the answers to what is under way, when
// its master is closed.
const closeGrace = 100 * time.Millisecond

// remains reports what masters keep of a client that has closed, and was born then,
// unless a fault has put it where it is.
func (k *checker) remains(me masters.Owner, born time.Duration) {
	for _, m := range k.trial.masters {
		for _, key := range sortedKeys(m.keys.Keys) {
			if e := m.keys.Find(key); e != nil && (k.stores(m, key, e, me) || m.lapsed < born && k.queues(m, e, me)) {
				k.report(Violation{
					Kind:    Leftover,
					What:    fmt.Sprintf("%s still has %q of %s, which has closed", m.host.name, key, clientName(me.Client)),
					Clients: []int{me.Client},
				})
			}
		}
	}
}

// stores reports whether a key is a client's.
func (k *checker) stores(m *master, key string, e *masters.Entry, me masters.Owner) bool {
	return masters.OwnerOf(e.Value) == me && !(masters.IsLock(key) && k.ledger.book(key).at[m.index].astray)
}

// queues reports whether a key is a queue in which a client waits.
func (k *checker) queues(m *master, e *masters.Entry, me masters.Owner) bool {
	return slices.ContainsFunc(e.Queue, func(q masters.Queued) bool {
		return strings.HasPrefix(q.Member, me.ID()+"/") && !k.strays[stray{m.index, q.Member}]
	})
}
