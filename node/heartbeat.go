package node

import (
	"errors"
	"math"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// heartbeat looks at the marker and the clock, and tries again to deliver what
// the master refused.
func (m *Master) heartbeat(c *conn) {
	m.mu.Lock()
	if m.live.Load() != c {
		m.mu.Unlock()
		return
	}
	m.pending.Deliver(m.clock.now(), m.payer(c))
	m.mu.Unlock()
	m.tellPaid() // some may have expired
	m.lookAgain(c)
}

// Look reads the master's marker and clock now, if it is connected.
func (m *Master) Look() {
	if c := m.live.Load(); c != nil {
		m.lookAgain(c)
	}
}

// lookAgain looks at the marker and the clock, unless a look is under way whose
// answer is still to come.
func (m *Master) lookAgain(c *conn) {
	m.mu.Lock()
	skip, look := m.trust.looking, m.trust.look
	m.trust.looking = true
	m.mu.Unlock()
	if skip {
		return
	}
	asked := m.trust.guard.Now()
	m.ask(c, look, func(a answer) {
		if v := m.heard(c, asked, a); v.Writes() {
			m.write(c, v)
			return
		}
		m.looked()
	})
}

// write puts the marker there. The answer is evidence like that of a look, but
// leads to no other write before the next heartbeat.
func (m *Master) write(c *conn, v Verdict) {
	asked := m.trust.guard.Now()
	m.ask(c, writeMarker(m.config.KeyPrefix, v), func(a answer) {
		m.heard(c, asked, a)
		m.looked()
	})
}

// ask sends a command of our own. Without an answer the connection is broken,
// and the next handshake looks instead.
func (m *Master) ask(c *conn, cmd *wire.Command, done func(answer)) {
	err := c.send(&call{cmd: cmd, done: func(r wire.Reply) {
		if r.Err == nil {
			done(answer{value: r.Value})
			return
		}
		var refusal *wire.ServerError
		if errors.As(r.Err.Err, &refusal) {
			done(answer{refusal: refusal})
		}
	}})
	if err != nil {
		m.looked()
	}
}

func (m *Master) looked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trust.looking = false
}

// heard judges the answer to a look during a session. A refusal is no evidence:
// the master is busy, or full, and the next heartbeat asks again. A master that
// turns out to belong to another group is left.
func (m *Master) heard(c *conn, asked drift.Instant, a answer) Verdict {
	m.mu.Lock()
	g := m.contact.server
	if a.refusal != nil {
		m.contact.lastError = a.refusal
	}
	m.mu.Unlock()
	if a.refusal != nil {
		return Verdict{}
	}
	if fields, ok := a.value.([]any); !ok || len(fields) != 5 {
		c.sever(errShifted)
		return Verdict{}
	}
	g.uptime = -1 // was of the handshake
	e := m.evidence(g, asked, a)
	v := m.judge(e)
	switch {
	case e.Replica:
		c.sever(errDemoted)
		return Verdict{}
	case v.Stranger != nil:
		c.sever(v.Stranger)
		return Verdict{}
	}
	if v.Lost || v.Slow {
		m.tellForgotten()
	}
	return v
}

// judge feeds the guard and says what changed.
func (m *Master) judge(e Evidence) Verdict {
	m.mu.Lock()
	if e.Secret {
		m.trust.look = readMarkerAlone(m.config.KeyPrefix) // which fills no log with denials
	}
	v, news, unsure := m.trust.judge(e)
	switch news {
	case EventQuarantined:
		m.happened(m.quarantined(v.Rest))
	case EventAdmitted:
		m.happened(Event{Kind: EventAdmitted})
	}
	doubtful := !m.complained.otherList && m.config.Group.doubts(e.Marker.Group)
	m.complained.otherList = m.complained.otherList || doubtful
	m.seen.take(e, m.config.Clock.Now())
	m.mu.Unlock()
	if news == EventAdmitted {
		m.pubsub.missed()
	}
	m.logVerdict(v, news, unsure)
	if doubtful {
		m.config.Logger.Warn("redlock: redis master is known to other clients under a different list of addresses: "+
			"make sure that all use the same masters, or give the group a name", "node", m.Addr(), "group", e.Marker.Group.String())
	}
	return v
}

func (m *Master) logVerdict(v Verdict, news EventKind, unsure bool) {
	log := m.config.Logger
	if pace := m.config.Group.atLeast(); v.Slow && pace > 1+m.config.Guard.factor() {
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

// tellForgotten is called when the master has forgotten what it knew and can be told
// again.
func (m *Master) tellForgotten() {
	m.mu.Lock()
	f := m.listeners.forgotten
	m.mu.Unlock()
	if f != nil {
		f()
	}
}

// evidence reads the answer of the marker's script.
func (m *Master) evidence(g serverInfo, asked drift.Instant, a answer) Evidence {
	e := readEvidence(g, a)
	e.Sent, e.Took = asked, m.clock.now()-asked.Monotonic()
	return e
}

func readEvidence(g serverInfo, a answer) Evidence {
	e := Evidence{RunID: g.runID, Uptime: g.uptime}
	fields, _ := a.value.([]any)
	if len(fields) != 5 {
		e.Blind, e.Secret = true, true
		return e
	}
	e.Replica, e.Promotion = wire.ReadReplication(wire.Text(fields[3]))
	marker, err := ParseMarker(wire.Text(fields[0]))
	if err != nil {
		e.Blind = true // another program's key: to be left alone
	}
	e.Marker = marker
	e.Offsets, e.Secret = wire.Text(fields[4]), fields[4] == nil
	e.Time = wire.TimeOf(wire.Text(fields[1]), wire.Text(fields[2]))
	return e
}

func readMarker(prefix string) *wire.Command {
	return &wire.Command{Op: wire.OpRead, Script: wire.ScriptMarker, Keys: []string{wire.MarkerKey(prefix)}, Args: []string{"", "", "", ""}}
}

// readMarkerAlone is readMarker for a user who may not touch what stands beside it.
func readMarkerAlone(prefix string) *wire.Command {
	return &wire.Command{Op: wire.OpRead, Script: wire.ScriptMarker, Keys: []string{wire.MarkerKey(prefix)}, Args: []string{"", ""}}
}

// writeMarker replaces what the verdict was about by what it says, and nothing else.
func writeMarker(prefix string, v Verdict) *wire.Command {
	return &wire.Command{Op: wire.OpRead, Script: wire.ScriptMarker, Keys: []string{wire.MarkerKey(prefix)}, Args: v.Args()}
}
