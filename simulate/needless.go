package simulate

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
)

// What a client asks of its masters, or keeps, without need. Each command is work for
// all of them, just when they have much to do.

// demand is what a client knows of a plain lock that its callers want.
type demand struct {
	callers int           // that want it now
	wanted  bool          // one of them has found it taken, or another before it
	since   time.Duration // when the last of them went
	resumes int           // of the client's host then
}

// comes notes a caller that wants a lock, until goes is called. Those of a workload are
// not known here.
func (t *trial) comes(p *Process, name string) (goes func()) {
	if t.workload != nil {
		return func() {}
	}
	c, now := p.client, t.world.now
	d := c.demands[name]
	if d == nil {
		d = new(demand)
		c.demands[name] = d
	}
	switch {
	case d.callers > 0:
		d.wanted = true
	case now-d.since > t.forgetful() && d.resumes == c.host.resumes:
		d.wanted = false // its queue has been closed meanwhile
	}
	d.callers++
	p.demand = d
	return func() {
		p.demand = nil
		d.callers--
		d.since, d.resumes = t.world.now, c.host.resumes
	}
}

// hastily looks at a caller that begins with an ask. Where masters did not answer an
// attempt, and nobody has found the lock taken, it begins with another attempt.
func (c *client) hastily(cmd *wire.Command) {
	p := c.world.running
	if p == nil || p.demand == nil {
		return
	}
	d := p.demand
	p.demand = nil
	if cmd.Op == wire.OpAsk && !d.wanted && c.config.Lock == PlainLock {
		c.blame("a caller queues for a lock that none has found taken: an ask costs the masters more than an attempt")
	}
}

// finds notes that a caller has found a lock taken.
func (c *client) finds(key string) {
	if d := c.demands[key]; d != nil {
		d.wanted = true
	}
}

// refusals are the masters that refused a TryLock, with the instants at which their votes
// had been counted.
type refusals struct {
	value string
	at    map[int]time.Duration
}

// refused notes that a master has refused.
func (c *client) refused(master int, value string) {
	for _, p := range c.host.procs {
		if r := p.refusals; r != nil && r.value == value {
			r.at[master] = c.world.now
		}
	}
}

// tells looks at what a TryLock asks for and gives back: nothing where it was refused.
// Its code may have been stopped twice since it saw who had. Where replies are stopped in
// the middle it may not have seen it.
func (c *client) tells(master int, cmd *wire.Command) {
	p := c.world.running
	if p == nil || p.refusals == nil || c.preemption.every > 0 && c.preemption.where != InCalls {
		return
	}
	r := p.refusals
	switch {
	case cmd.Op == wire.OpAcquire && r.value == "":
		r.value = cmd.Args[0]
	case cmd.Op == wire.OpRelease && cmd.Args[0] == r.value:
		if at, ok := r.at[master]; ok && (p.rests[0] == 0 || at < p.rests[0]) {
			c.blame(fmt.Sprintf("%s has refused a TryLock, and is told to forget it", c.masters[master].host.name))
		}
	}
}

// rounds looks for rounds that go on although the client has no work, and all that it
// has asked was answered.
func (k *checker) rounds(c *client) {
	if c.asked == c.counted || c.preemption.every > 0 || c.closing || c.api == nil || !c.idle() {
		return
	}
	for _, l := range c.links {
		if !l.settled() {
			return
		}
	}
	c.counted = c.asked
	if u := seam.UsageOf(c.api); u.Rounds > 0 {
		c.blame(fmt.Sprintf("it has nothing to do, all that it asked was answered, and %d rounds go on", u.Rounds))
	}
}
