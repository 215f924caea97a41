package simulate

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// A master is kept from voting only for a reason: it lost its memory, or may have, or its
// clock was wrong. And no longer than promised: until the longest lease that it may have
// forgotten is over.

// suspected notes that the master may have lost its memory.
func (m *master) suspected() { m.remarked, m.suspect, m.lapsesThen = false, m.world.now, m.lapses }

// keptOut is called when a client sends no vote to a master because it does not believe
// it. Nothing that the client says of the reason is looked at.
func (k *checker) keptOut(l *link) {
	t, m, c := k.trial, l.master, l.client
	if l.kept || !m.remarked || m.keys.Replica || t.config.rung != nil || l.disturbed() {
		return // nobody has looked at it since it lost its memory, or can look
	}
	// Who could not look for a while looks again with the next heartbeat, before it votes.
	together := max(l.since, max(c.host.resumed, m.host.resumed, m.answers, l.wire.mended)+heartbeat)
	limit := together + compares
	if reason := max(m.marked, t.wrongClocks()); reason >= 0 {
		limit = max(reason, together) + max(t.longestHold(), settles) + looks
	}
	if now := t.world.now; now > limit && c.compared() {
		l.kept = true // told once
		k.report(Violation{
			Kind:    KeptOut,
			What:    fmt.Sprintf("%s lets %s not vote, which has forgotten nothing for too long, and all clocks were right for as long", c.host.name, m.host.name),
			Clients: []int{c.index},
		})
	}
}

// disturbed reports whether a look would be refused, or come late.
func (l *link) disturbed() bool {
	w := l.wire
	return l.master.refuses != nil || w.slow > 0 || w.cut[outward]+w.cut[inward] > 0
}

const (
	compares = 200 * time.Millisecond // a client that begins compares the clocks of a quorum first
	looks    = 3 * time.Second        // for a look, which may be answered late
	settles  = 2 * node.HeardWithin   // a master whose clock was set back waits until messages from before are too old (S59)
)

// compared reports whether the client has known a quorum of its masters for long enough to
// compare their clocks.
func (c *client) compared() bool {
	n := 0
	for _, l := range c.links {
		if l, ok := l.(*link); ok && l.greeted && c.world.now-l.since > compares {
			n++
		}
	}
	return n >= quorum.Size(len(c.links))
}

// wrongClocks is until when, in true time, any clock was wrong. One that was set stays
// wrong for those who compare it with others.
func (t *trial) wrongClocks() (until time.Duration) {
	until = -forever
	for _, m := range t.masters {
		until = max(until, m.host.clock.wrongUntil())
	}
	for _, c := range t.clients {
		until = max(until, c.host.clock.wrongUntil())
	}
	return until
}

// longestHold is how long the most careful client keeps a master from voting.
func (t *trial) longestHold() (hold time.Duration) {
	for i := range t.clients {
		hold = max(hold, t.config.guard(i).Hold)
	}
	return hold
}

// lossless has durable masters lose nothing when they restart.
func lossless(faults []Fault, cfg *Config) []Fault {
	for i, f := range faults {
		switch f.Kind {
		case RestartPartial, RestartSnapshot, Failover:
			if cfg.durable {
				faults[i].Kind = Restart
			}
		}
	}
	return faults
}
