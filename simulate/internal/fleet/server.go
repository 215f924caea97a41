package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// server is a master's end of a byte connection. It reads requests and answers them as
// Redis does, from the model's keyspace.
type server struct {
	*transport
	pipe     *pipe
	channels map[string]bool // that the client is subscribed to; nil: never was, or is gone
	out      []byte
}

// received takes the bytes of one write, which is a number of whole requests.
func (s *server) received(b []byte) {
	cn := s.pipe.conn
	w := s.master.world
	if cn.lost > 0 && w.Now >= cn.lost {
		return
	}
	if cn.life != s.master.Host.Life {
		cn.hangUp() // the master has started anew and knows no such connection
		return
	}
	for len(b) > 0 {
		var args []string
		args, b = readRequest(b)
		if !cn.open {
			s.client.Stats.RanLate++
		}
		s.serve(args)
	}
	s.flush()
}

// flush sends the answers.
func (s *server) flush() {
	cn := s.pipe.conn
	out := s.out
	s.out = nil
	if len(out) == 0 || !cn.open || cn.lost > 0 && s.master.world.Now >= cn.lost {
		return
	}
	cn.wire.send(&cn.in, cn.host, world.Action(func() { s.pipe.arrive(out) }), Inward)
}

// gone is called when the client has closed the connection.
func (s *server) gone() { s.channels = nil }

// message sends a published message.
func (s *server) message(channel, text string) {
	s.out = appendReply(s.out, []any{[]byte("message"), []byte(channel), []byte(text)})
	s.flush()
}

// readRequest takes the first request off b: an array of bulk strings.
func readRequest(b []byte) (args []string, rest []byte) {
	n, rest := length(b, '*')
	for range n {
		var size int
		size, rest = length(rest, '$')
		args = append(args, string(rest[:size]))
		rest = rest[size+2:]
	}
	return args, rest
}

// length takes a line off b: the kind and a number.
func length(b []byte, kind byte) (n int, rest []byte) {
	if b[0] != kind {
		panic(fmt.Sprintf("simulate: request %.40q", b))
	}
	i := 1
	for ; b[i] != '\r'; i++ {
		n = 10*n + int(b[i]-'0')
	}
	return n, b[i+2:]
}

// serve answers one request.
func (s *server) serve(args []string) {
	m := s.master
	switch args[0] {
	case "SUBSCRIBE":
		s.subscribe(args[1])
		return
	case "UNSUBSCRIBE":
		delete(s.channels, args[1])
		s.out = appendReply(s.out, []any{[]byte("unsubscribe"), []byte(args[1]), int64(len(s.channels))})
		return
	case "PING":
		s.out = appendReply(s.out, s.pong())
		return
	}
	reply, err := s.answer(args)
	if err != nil {
		s.out = append(append(append(s.out, '-'), err.Message...), '\r', '\n')
		return
	}
	m.world.Mix(digest(reply))
	s.out = appendReply(s.out, reply)
}

func (s *server) subscribe(channel string) {
	if s.master.Deaf {
		s.out = append(s.out, "-NOPERM this user has no permissions to run the 'subscribe' command\r\n"...)
		return
	}
	if s.channels == nil {
		s.channels = map[string]bool{}
		s.master.servers = append(s.master.servers, s)
	}
	s.channels[channel] = true
	s.out = appendReply(s.out, []any{[]byte("subscribe"), []byte(channel), int64(len(s.channels))})
}

// pong is the answer to PING: an array if the client is subscribed.
func (s *server) pong() any {
	if len(s.channels) > 0 {
		return []any{[]byte("pong"), []byte("")}
	}
	return "PONG"
}

// answer runs a request as the server would now.
func (s *server) answer(args []string) (any, *wire.ServerError) {
	m := s.master
	switch args[0] {
	case "ROLE", "INFO", "SCRIPT":
		if m.Refuses != nil && refused(m.Refuses.Code, &wire.Command{Op: wire.OpRead}) {
			return nil, m.Refuses
		}
		return m.about(args), nil
	case "EVALSHA", "EVAL":
		return s.eval(args)
	}
	cmd := plain(args)
	if len(cmd.Args) > 0 && s.repairs[cmd.Args[0]] {
		cmd.Op = wire.OpRepair
	}
	return s.exec(cmd)
}

// exec runs a command, and tells the checks.
func (s *server) exec(cmd *wire.Command) (any, *wire.ServerError) {
	m := s.master
	reply, err := m.exec(s.client.Index, cmd)
	if err == nil {
		m.Watch.Ran(m, s.client.Index, cmd, !s.pipe.conn.open)
	}
	return reply, err
}

// about answers requests that are not about keys.
func (m *Master) about(args []string) any {
	switch args[0] {
	case "ROLE":
		if m.Keys.Replica {
			return []any{[]byte("slave"), []byte("other"), int64(6379), []byte("connected"), int64(0)}
		}
		return []any{[]byte("master"), int64(0), []any{}}
	case "SCRIPT":
		script := scriptOf(args[2])
		m.Loaded[script] = true
		return []byte(script.SHA)
	}
	return fmt.Appendf(nil, "# Server\r\nredis_version:7.2.0\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n# Replication\r\n%s",
		m.runID(), max(0, m.Host.Clock.WallNow()-m.started)/time.Second, m.Keys.Replication())
}

var errNoScript = wire.Server("NOSCRIPT No matching script. Please use EVAL.")

// eval runs a script that was loaded before, or comes with the request.
func (s *server) eval(args []string) (any, *wire.ServerError) {
	m := s.master
	script := scriptOf(args[1])
	if args[0] == "EVAL" {
		m.Loaded[script] = true
	} else if !m.Loaded[script] {
		return nil, errNoScript
	}
	n, _ := strconv.Atoi(args[2])
	cmd := &wire.Command{Op: opOf(script), Script: script, Keys: args[3 : 3+n], Args: args[3+n:]}
	if calls := wire.Unfold(cmd); calls != nil {
		return inShort(script, s.several(calls)), nil
	}
	return s.exec(cmd)
}

// several runs the calls that one script call folds together.
func (s *server) several(calls []*wire.Command) (answers []any) {
	for _, cmd := range calls {
		answer, err := s.exec(cmd)
		if err != nil {
			answer = err
		}
		answers = append(answers, answer)
	}
	return answers
}

// inShort is what several releases answer that have all deleted their lock.
func inShort(s *wire.Script, answers []any) any {
	if s.Name != "releases" || slices.ContainsFunc(answers, func(a any) bool { return a != int64(1) }) {
		return answers
	}
	return int64(len(answers))
}

// scriptOf finds a script by its source or its hash.
func scriptOf(text string) *wire.Script {
	for _, s := range wire.Scripts {
		if s.SHA == text || s.Source == text {
			return s
		}
	}
	panic("simulate: no such script: " + text)
}

// opOf returns what a script is for, as far as it matters to which commands a server in
// trouble refuses.
func opOf(s *wire.Script) wire.Op {
	last := s.Name[strings.LastIndexByte(s.Name, '_')+1:]
	switch last {
	case "marker", "inspect":
		return wire.OpRead
	case "release", "releases":
		return wire.OpRelease
	case "extend":
		return wire.OpExtend
	case "repair":
		return wire.OpRepair
	case "ask":
		return wire.OpAsk
	case "raise", "move", "resize":
		return wire.OpCommit
	}
	return wire.OpAcquire
}

// plain makes a request that runs no script a command.
func plain(args []string) *wire.Command {
	cmd := &wire.Command{Op: wire.OpAcquire, Name: args[0]}
	switch args[0] {
	case "DEL", "EXISTS":
		cmd.Keys = args[1:]
	case "PUBLISH", "TIME", "FLUSHALL":
		cmd.Args = args[1:]
	default:
		cmd.Keys, cmd.Args = args[1:2], args[2:]
	}
	switch args[0] {
	case "GET", "EXISTS", "PTTL", "TIME":
		cmd.Op = wire.OpRead
	case "DEL":
		cmd.Op = wire.OpRelease
	}
	return cmd
}

// appendReply appends a reply as Redis sends it.
func appendReply(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "$-1\r\n"...)
	case string:
		return append(append(append(b, '+'), v...), '\r', '\n')
	case int64:
		return append(strconv.AppendInt(append(b, ':'), v, 10), '\r', '\n')
	case *wire.ServerError:
		return append(append(append(b, '-'), v.Message...), '\r', '\n')
	case []byte:
		b = append(strconv.AppendInt(append(b, '$'), int64(len(v)), 10), '\r', '\n')
		return append(append(b, v...), '\r', '\n')
	case []any:
		b = append(strconv.AppendInt(append(b, '*'), int64(len(v)), 10), '\r', '\n')
		for _, each := range v {
			b = appendReply(b, each)
		}
		return b
	}
	panic(fmt.Sprintf("simulate: reply %T", v))
}
