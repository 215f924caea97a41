package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// stub is a server that answers whatever a test wants.
type stub struct {
	t  testing.TB
	ln net.Listener

	mu          sync.Mutex
	answer      func(args []string) string // raw RESP; silence, or hangUp after what stands before it
	log         []string                   // requests that are not of the handshake
	loaded      map[string]int             // scripts by source
	marker      string                     // stored
	replication string                     // what INFO replication says
	ahead       time.Duration              // by which its clock was set forward
	conns       map[net.Conn]bool
	dials       int
	ends        []error // why connections ended
}

const (
	silence = ""
	hangUp  = "\x00hang up"
	pour    = "\x00pour" // what stands behind it again and again, until nobody reads it
)

func newStub(t testing.TB, answer func(args []string) string) *stub {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{t: t, ln: ln, answer: answer, conns: make(map[net.Conn]bool), loaded: make(map[string]int)}
	s.marker = guard.NewMaster("stub", stubTime, 0, guard.GroupID{}).String() // has been known for long
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.dials++
			s.mu.Unlock()
			all.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.hangUp()
		all.Wait()
	})
	return s
}

func (s *stub) addr() string { return s.ln.Addr().String() }

// hangUp closes all connections.
func (s *stub) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

func (s *stub) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		args, err := readRequest(r)
		if err != nil {
			s.mu.Lock()
			s.ends = append(s.ends, err)
			s.mu.Unlock()
			return
		}
		reply, flood, endless := strings.Cut(s.reply(args), pour)
		reply, last := strings.CutSuffix(reply, hangUp)
		if reply != silence { // to write nothing would take the news of a reset
			if _, err := io.WriteString(c, reply); err != nil {
				return
			}
		}
		if last {
			return
		}
		if endless {
			pourOut(c, flood)
			return
		}
	}
}

// pourOut writes s again and again, up to a gigabyte of it.
func pourOut(c net.Conn, s string) {
	const chunk = 64 << 10
	b := bytes.Repeat([]byte(s), chunk/len(s))
	for range (1 << 30) / chunk {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// reply answers a request. Several releases in one call are answered, and
// logged, as if they had come one by one.
func (s *stub) reply(args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if args[0] != "EVALSHA" || args[1] != wire.ScriptReleases.SHA {
		return s.replyOne(args)
	}
	keys, _ := strconv.Atoi(args[2])
	locks, lines, values := args[3:3+keys/2], args[3+keys/2:3+keys], args[3+keys:]
	replies := fmt.Sprintf("*%d\r\n", len(values))
	for i, value := range values {
		one := []string{"EVALSHA", wire.ScriptRelease.SHA, "1", locks[i]}
		if lines[i] != locks[i] {
			one[2] = "2"
			one = append(one, lines[i])
		}
		reply := s.replyOne(append(one, value))
		if reply == silence || strings.HasSuffix(reply, hangUp) {
			return reply
		}
		replies += reply
	}
	return replies
}

func (s *stub) replyOne(args []string) string {
	greeting, isGreeting := s.handshake(args)
	if args[0] == "SCRIPT" {
		s.loaded[args[2]]++
	}
	if !isGreeting {
		s.log = append(s.log, strings.Join(args, " "))
	}
	if reply := s.answer(args); reply != "default" {
		return reply
	}
	return greeting
}

// ofHandshake reports whether a request is one of the handshake.
func ofHandshake(args []string) bool {
	_, ok := new(stub).handshake(args)
	return ok
}

// stubTime is what a stub's clock shows.
var stubTime = time.Unix(1714564800, 0)

// handshake is what a healthy master says to the handshake and the heartbeat.
func (s *stub) handshake(args []string) (reply string, ok bool) {
	switch {
	case args[0] == "ROLE":
		return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", true
	case args[0] == "INFO":
		return bulk(s.replication + "run_id:stub\r\nuptime_in_seconds:86400\r\nredis_version:7.0.0\r\n"), true
	case args[0] == "SCRIPT":
		return bulk("sha"), true
	case args[0] == "PING":
		return "+PONG\r\n", true
	case strings.HasPrefix(args[0], "EVAL") && (args[1] == wire.ScriptMarker.Source || args[1] == wire.ScriptMarker.SHA):
		if seen, write := args[4], args[5]; write != "" && seen == s.marker {
			s.marker = write
			if run, rest, _ := strings.Cut(write, " "); strings.HasPrefix(rest, "0 ") {
				s.marker = fmt.Sprintf("%s %d%s", run, stubTime.UnixMicro(), rest[1:])
			}
		}
		return "*5\r\n" + bulk(s.marker) + s.clock() + bulk(s.replication) + bulk(""), true
	case args[0] == "TIME":
		return "*2\r\n" + s.clock(), true
	case args[0] == "GET" && args[1] == wire.MarkerKey(""):
		return bulk(s.marker), true
	case strings.HasPrefix(args[0], "EVAL") && (args[1] == wire.ScriptRelease.Source || args[1] == wire.ScriptRelease.SHA):
		return ":1\r\n", false
	}
	return "+OK\r\n", false
}

// clock is what TIME answers with.
func (s *stub) clock() string {
	return bulk(strconv.FormatInt(stubTime.Add(s.ahead).Unix(), 10)) + bulk("0")
}

// healthy answers as handshake does, 1 to a release, and OK to everything else.
func healthy([]string) string { return "default" }

// but answers everything as healthy does, and the commands named as told.
func but(name string, answer func(args []string) string) func([]string) string {
	return func(args []string) string {
		if args[0] == name {
			return answer(args)
		}
		return "default"
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func (s *stub) set(answer func(args []string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// seen returns the requests so far that are not of the handshake.
func (s *stub) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.log...)
}

// stored returns the marker.
func (s *stub) stored() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marker
}

// loads returns how often a script was loaded.
func (s *stub) loads(script *wire.Script) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded[script.Source]
}

// ended returns why connections ended so far.
func (s *stub) ended() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error{}, s.ends...)
}

func (s *stub) dialled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

func readRequest(r *bufio.Reader) ([]string, error) {
	n, err := readNumber(r, '*')
	args := make([]string, 0, n)
	for range n {
		size, err := readNumber(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, err
}

func readNumber(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
