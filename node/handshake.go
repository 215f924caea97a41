package node

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// serverInfo is what a master says of itself in the handshake.
type serverInfo struct {
	wire.Host
	role    string   // master; empty: unknown
	unknown []string // the facts that it hid
	forgot  bool     // it has forgotten what we knew it for

	roundTrip time.Duration
}

// greet asks a master all that must be known before it may vote: that it is a master,
// which run of the server it is, and that the guard has seen it.
//
// A server that does not know a question or forbids it (miniredis, managed services)
// is accepted; Status reports what stays unknown.
func (m *Master) greet(d *Dialogue) (serverInfo, error) {
	look := m.lookAfresh()
	asked := m.trust.guard.Now()
	questions := append(wire.Greeting(m.config.KeyPrefix)[:3], look)
	for _, s := range wire.Common {
		questions = append(questions, &wire.Command{Op: wire.OpRead, Name: "SCRIPT", Args: []string{"LOAD", s.Source}})
	}
	answers, err := d.Ask(questions...)
	if err != nil {
		return serverInfo{}, err
	}
	g := serverInfo{role: wire.RoleOf(answers[0], answers[1])}
	if g.role != "" && g.role != "master" {
		m.judge(guard.Evidence{Replica: true, RunID: wire.HostOf(answers[2]).RunID})
		return g, fmt.Errorf("%w: its role is %s", ErrNotMaster, wire.Printable(g.role))
	}
	for _, a := range answers {
		if refusal := a.Refused(); refusal != nil && notYet(refusal) {
			return g, refusal
		}
	}
	g.Host = wire.HostOf(answers[2])
	if err := tooOld(wire.Text(answers[2].Value)); err != nil {
		return g, err
	}
	e := m.evidence(g.Host, asked, answers[3])
	v := m.judge(e)
	if e.Replica { // it has become one since ROLE was answered
		return g, ErrNotMaster
	}
	g.forgot = v.Lost
	// Before the master may vote, its marker says what we have to say. Another
	// client that marks it at the same time makes us look once more. A refusal is no evidence (S81).
	for tries := 0; v.Writes() && v.Stranger == nil && tries < maxMarks; tries++ {
		asked := m.trust.guard.Now()
		if answers, err = d.Ask(wire.Mark(m.config.KeyPrefix, v.Args()...)); err != nil {
			return g, err
		}
		seen := m.evidence(g.Host, asked, answers[0])
		if refusal := answers[0].Refused(); refusal != nil {
			if seen.Replica = refusal.Demoted(); !seen.Replica {
				break
			}
		}
		if v = m.judge(seen); seen.Replica {
			return g, ErrNotMaster
		}
	}
	if v.Stranger != nil {
		return g, v.Stranger
	}
	g.list(e)
	g.roundTrip, err = m.roundTrip(d)
	return g, err
}

// lookAfresh returns a look as if nothing had been denied yet.
func (m *Master) lookAfresh() *wire.Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trust.look = wire.Look(m.config.KeyPrefix)
	return m.trust.look
}

// maxMarks bounds how often a handshake tries to mark a master. A heartbeat goes
// on with it.
const maxMarks = 5

// notYet reports whether an error reply is about us or the server's state, and
// not about the question.
func notYet(e *wire.ServerError) bool {
	switch e.Code {
	case "NOAUTH", "LOADING", "BUSY", "MASTERDOWN", "DENIED":
		return true
	}
	return false
}

func (g *serverInfo) list(e guard.Evidence) {
	for _, f := range []struct {
		name    string
		unknown bool
	}{
		{"role", g.role == ""}, {"run_id", g.RunID == ""}, {"uptime", g.Uptime < 0},
		{"version", g.Version == ""}, {"marker", e.Blind}, {"time", e.Time.IsZero()},
	} {
		if f.unknown {
			g.unknown = append(g.unknown, f.name)
		}
	}
}
