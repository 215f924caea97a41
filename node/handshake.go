package node

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// serverInfo is what a master says of itself in the handshake.
type serverInfo struct {
	runID   string        // empty: unknown
	version string        // empty: unknown
	role    string        // master; empty: unknown
	uptime  time.Duration // negative: unknown
	unknown []string      // what it would not tell
	forgot  bool          // it has forgotten what we knew it for

	roundTrip time.Duration
}

// greet asks a master all that must be known before it may vote: that it is a master,
// which run of the server it is, and that the guard has seen it.
//
// A server that does not know a question or forbids it (miniredis, managed services)
// is taken as it is; Status reports what stays unknown.
func (m *Master) greet(d dialogue) (serverInfo, error) {
	look := m.lookAfresh()
	asked := m.trust.guard.Now()
	questions := []*wire.Command{
		{Op: wire.OpRead, Name: "ROLE"},
		{Op: wire.OpRead, Name: "INFO", Args: []string{"replication"}},
		{Op: wire.OpRead, Name: "INFO", Args: []string{"server"}},
		look,
	}
	for _, s := range wire.Common {
		questions = append(questions, &wire.Command{Op: wire.OpRead, Name: "SCRIPT", Args: []string{"LOAD", s.Source}})
	}
	answers, err := d.ask(questions...)
	if err != nil {
		return serverInfo{}, err
	}
	g := serverInfo{uptime: -1}
	if g.role = role(answers[0], answers[1]); g.role != "" && g.role != "master" {
		m.judge(Evidence{Replica: true})
		return g, fmt.Errorf("%w: its role is %s", ErrNotMaster, wire.Printable(g.role))
	}
	for _, a := range answers {
		if a.refusal != nil && notYet(a.refusal) {
			return g, a.refusal
		}
	}
	g.readServer(answers[2])
	if err := tooOld(answers[2]); err != nil {
		return g, err
	}
	e := m.evidence(g, asked, answers[3])
	v := m.judge(e)
	g.forgot = v.Lost
	// Before the master may vote, its marker says what we have to say. Another
	// client that marks it at the same time makes us look once more.
	for tries := 0; v.Writes() && v.Stranger == nil && tries < maxMarks; tries++ {
		asked := m.trust.guard.Now()
		if answers, err = d.ask(writeMarker(m.config.KeyPrefix, v)); err != nil {
			return g, err
		}
		v = m.judge(m.evidence(g, asked, answers[0]))
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
	m.trust.look = readMarker(m.config.KeyPrefix)
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

// role reads ROLE, or INFO replication where ROLE is unknown or forbidden.
func role(role, info answer) string {
	if fields, ok := role.value.([]any); ok && len(fields) > 0 {
		return wire.Text(fields[0])
	}
	return wire.InfoField(wire.Text(info.value), "role")
}

func (g *serverInfo) readServer(info answer) {
	g.runID = wire.InfoField(wire.Text(info.value), "run_id")
	if g.version = wire.InfoField(wire.Text(info.value), "valkey_version"); g.version == "" {
		g.version = wire.InfoField(wire.Text(info.value), "redis_version")
	}
	if s, err := strconv.ParseInt(wire.InfoField(wire.Text(info.value), "uptime_in_seconds"), 10, 64); err == nil {
		// A clock that was set back makes it negative, which is no age.
		g.uptime = time.Duration(max(0, s)) * time.Second
	}
}

func (g *serverInfo) list(e Evidence) {
	for _, f := range []struct {
		name    string
		unknown bool
	}{
		{"role", g.role == ""}, {"run_id", g.runID == ""}, {"uptime", g.uptime < 0},
		{"version", g.version == ""}, {"marker", e.Blind}, {"time", e.Time.IsZero()},
	} {
		if f.unknown {
			g.unknown = append(g.unknown, f.name)
		}
	}
}

// dialogue asks and waits: the handshake, before the connection is shared.
type dialogue struct{ socket *socket }

type answer struct {
	value   any
	refusal *wire.ServerError
}

// ask sends the commands at once, scripts by their source, and returns all
// answers. A server that refuses the connection says why and closes it: then
// that is the error.
func (d dialogue) ask(cmds ...*wire.Command) ([]answer, error) {
	var b []byte
	for _, cmd := range cmds {
		b = wire.Append(b, cmd, wire.BySource)
	}
	if _, err := d.socket.Write(b); err != nil {
		return nil, err
	}
	answers := make([]answer, 0, len(cmds))
	for range cmds {
		a, err := d.next()
		if err != nil && len(answers) > 0 && answers[0].refusal != nil {
			return nil, answers[0].refusal
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

func (d dialogue) next() (answer, error) {
	v, err := d.socket.receive()
	if refusal, ok := v.(*wire.ServerError); ok {
		return answer{refusal: refusal}, nil
	}
	return answer{value: v}, err
}
