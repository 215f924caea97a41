package node

import (
	"math"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// heartbeat delivers owed releases, and looks at the marker and the clock unless nobody uses the client. A
// master that does not vote is looked at all the same: some votes only count when its clock was looked at
// for a restart guard without a gap (L86).
func (m *Master) heartbeat(c *conn) {
	m.mu.Lock()
	if m.live.Load() != c {
		m.mu.Unlock()
		return
	}
	m.pending.Deliver(m.now(), m.payer(c))
	idle, votes := m.listeners.idle, m.trust.guard.Admit(wire.OpAcquire) == nil
	m.mu.Unlock()
	m.tellPaid() // some may have expired
	if idle == nil || !idle() || !votes {
		m.lookAgain(c)
	}
}

// Look is described at Resting.
func (m *Master) Look() {
	if c := m.live.Load(); c != nil {
		m.lookAgain(c)
	}
}

// lookAgain looks at the marker and the clock, unless a look is under way whose
// answer is still to come.
func (m *Master) lookAgain(c *conn) {
	if c.looking.Swap(true) {
		return
	}
	m.mu.Lock()
	look := m.trust.look
	m.mu.Unlock()
	asked := m.trust.guard.Now()
	m.ask(c, look, func(r wire.Reply) {
		if v := m.heard(c, asked, r); v.Writes() {
			m.write(c, v)
			return
		}
		c.looking.Store(false)
	})
}

// write puts the marker there. The answer is evidence like that of a look, but
// leads to no other write before the next heartbeat.
func (m *Master) write(c *conn, v guard.Verdict) {
	asked := m.trust.guard.Now()
	m.ask(c, wire.Mark(m.config.KeyPrefix, v.Args()...), func(r wire.Reply) {
		m.heard(c, asked, r)
		c.looking.Store(false)
	})
}

// placeClock writes where the master's clock is, if that must be written before a vote, or can be written
// more completely. An error means that it could not be sent, and that the vote must not be sent either. The
// mutex is held.
//
// Invariant: whatever is sent on this connection from now on is executed after the write. So it is sent
// by source: a master that has forgotten its scripts would be sent it again, behind the vote.
func (m *Master) placeClock(c *conn) error {
	if c.placing {
		return nil
	}
	v := m.trust.guard.BeforeVote()
	if !v.Writes() {
		return nil
	}
	asked := m.trust.guard.Now()
	err := c.send(&call{cmd: wire.Mark(m.config.KeyPrefix, v.Args()...), by: wire.BySource, done: func(r wire.Reply) {
		if r.Err == nil || r.Refused() != nil {
			m.heard(c, asked, r)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.placing = false
	}})
	c.placing = err == nil
	return err
}

// ask sends a command of our own. Without an answer the connection is broken,
// and the next handshake looks instead.
func (m *Master) ask(c *conn, cmd *wire.Command, done func(wire.Reply)) {
	if c.send(&call{cmd: cmd, done: func(r wire.Reply) {
		if r.Err == nil || r.Refused() != nil {
			done(r)
		}
	}}) != nil {
		c.looking.Store(false)
	}
}

// heard judges the answer to a look during a session. A refusal proves nothing:
// the master is busy, or full, and the next heartbeat asks again. A master that
// turns out to belong to another group is left.
func (m *Master) heard(c *conn, asked drift.Instant, r wire.Reply) guard.Verdict {
	m.mu.Lock()
	host := m.contact.server.Host
	refusal := r.Refused()
	if refusal != nil {
		m.contact.lastError = refusal
	}
	m.mu.Unlock()
	if refusal != nil {
		return guard.Verdict{}
	}
	seen, ok := wire.SeenOf(r)
	if !ok {
		c.sever(errShifted)
		return guard.Verdict{}
	}
	c.tells(seen)
	host.Uptime = -1 // was of the handshake
	e := m.evidence(host, asked, r)
	v := m.judge(e)
	switch {
	case e.Replica:
		c.sever(errDemoted)
		return guard.Verdict{}
	case v.Stranger != nil:
		c.sever(v.Stranger)
		return guard.Verdict{}
	}
	if v.Lost || v.Slow {
		m.tellRenew(true)
	}
	return v
}

// judge feeds the guard and says what changed.
func (m *Master) judge(e guard.Evidence) guard.Verdict {
	m.mu.Lock()
	if e.Secret {
		m.trust.look = wire.LookAlone(m.config.KeyPrefix) // which fills no log with denials
	}
	v, news, unsure := m.trust.judge(e)
	switch news {
	case EventQuarantined:
		m.happened(m.quarantined(v.Rest))
	case EventAdmitted:
		m.happened(Event{Kind: EventAdmitted})
	}
	doubtful := !m.complained.otherList && m.config.Group.Doubts(e.Marker.Group)
	m.complained.otherList = m.complained.otherList || doubtful
	m.seen.take(e, m.config.Clock.Now())
	m.mu.Unlock()
	if v.Admitted {
		m.pubsub.missed()
	}
	m.logVerdict(v, news, unsure)
	if doubtful {
		m.config.Logger.Warn("redlock: redis master is known to other clients under a different list of addresses: "+
			"make sure that all use the same masters, or give the group a name", "node", m.Addr(), "group", e.Marker.Group.String())
	}
	return v
}

func (m *Master) logVerdict(v guard.Verdict, news EventKind, unsure bool) {
	log := m.config.Logger
	if pace := m.config.Group.AtLeast(); v.Slow && pace > 1+m.config.Guard.Factor() {
		log.Warn("redlock: our own clock is slow, so this client acquires no locks", "by_percent", math.Round(1000*(pace-1))/10)
	}
	switch {
	case news == EventQuarantined:
		log.Warn("redlock: redis master quarantined: it must not grant locks", "node", m.Addr(), "for", v.Rest, "reason", v.Reason)
	case news == EventAdmitted:
		log.Info("redlock: redis master out of quarantine", "node", m.Addr())
	case unsure:
		log.Warn("redlock: redis master is not fully guarded", "node", m.Addr(), "reason", v.Reason)
	}
}

// tellRenew has holders renew, when the master takes commands.
func (m *Master) tellRenew(all bool) {
	m.mu.Lock()
	f := m.listeners.renew
	m.mu.Unlock()
	if f != nil {
		f(all)
	}
}

// evidence reads the answer to a look that was asked at that instant.
func (m *Master) evidence(host wire.Host, asked drift.Instant, r wire.Reply) guard.Evidence {
	e := guard.EvidenceOf(host, r)
	e.Sent, e.Took = asked, m.now()-asked.Monotonic()
	return e
}

// seen is what the last look has told of a master's clock.
type seen struct {
	offset  time.Duration // the master's clock minus our wall clock
	began   time.Time     // what the master's clock said when ours was at zero; zero: not known
	latency time.Duration // what the look took
}

// take takes evidence that came at an instant of our wall clock.
func (s *seen) take(e guard.Evidence, now time.Time) {
	if e.Took > 0 {
		s.latency = e.Took
	}
	if !e.Time.IsZero() {
		s.offset = e.Time.Sub(now.Add(-e.Took / 2))
		s.began = e.Time.Add(-e.Sent.Monotonic() - e.Took/2)
	}
}
