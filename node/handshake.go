package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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
	asked := m.guard.Now()
	questions := []*Command{
		{Op: OpRead, Name: "ROLE"},
		{Op: OpRead, Name: "INFO", Args: []string{"replication"}},
		{Op: OpRead, Name: "INFO", Args: []string{"server"}},
		look,
	}
	for _, s := range common {
		questions = append(questions, &Command{Op: OpRead, Name: "SCRIPT", Args: []string{"LOAD", s.Source}})
	}
	answers, err := d.ask(questions...)
	if err != nil {
		return serverInfo{}, err
	}
	g := serverInfo{uptime: -1}
	if g.role = role(answers[0], answers[1]); g.role != "" && g.role != "master" {
		m.judge(Evidence{Replica: true})
		return g, fmt.Errorf("%w: its role is %s", ErrNotMaster, printable(g.role))
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
		asked := m.guard.Now()
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
func (m *Master) lookAfresh() *Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look = readMarker(m.config.KeyPrefix)
	return m.look
}

// maxMarks bounds how often a handshake tries to mark a master. A heartbeat goes
// on with it.
const maxMarks = 5

// notYet reports whether an error reply is about us or the server's state, and
// not about the question.
func notYet(e *ServerError) bool {
	switch e.Code {
	case "NOAUTH", "LOADING", "BUSY", "MASTERDOWN", "DENIED":
		return true
	}
	return false
}

// role reads ROLE, or INFO replication where ROLE is unknown or forbidden.
func role(role, info answer) string {
	if fields, ok := role.value.([]any); ok && len(fields) > 0 {
		return text(fields[0])
	}
	return infoField(info, "role")
}

func (g *serverInfo) readServer(info answer) {
	g.runID = infoField(info, "run_id")
	if g.version = infoField(info, "valkey_version"); g.version == "" {
		g.version = infoField(info, "redis_version")
	}
	if s, err := strconv.ParseInt(infoField(info, "uptime_in_seconds"), 10, 64); err == nil {
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

// infoField returns a field of an INFO reply, or the empty string.
func infoField(info answer, name string) string {
	for line := range strings.Lines(text(info.value)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// text returns a reply that is text.
func text(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// dialogue asks and waits: the handshake, before the connection is shared.
type dialogue struct{ wire *wire }

type answer struct {
	value   any
	refusal *ServerError
}

// ask sends the commands at once, scripts by their source, and returns all
// answers. A server that refuses the connection says why and closes it: then
// that is the error.
func (d dialogue) ask(cmds ...*Command) ([]answer, error) {
	var b []byte
	for _, cmd := range cmds {
		b = appendCommand(b, cmd, bySource)
	}
	if _, err := d.wire.Write(b); err != nil {
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
	v, err := d.wire.receive()
	if refusal, ok := v.(*ServerError); ok {
		return answer{refusal: refusal}, nil
	}
	return answer{value: v}, err
}
