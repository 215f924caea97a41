// Package hostile is a Redis server that misbehaves on demand, and is
// a good one otherwise: it stands in front of a server that does the work.
package hostile

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Master is a server that can misbehave.
type Master struct {
	id     string
	target string
	ln     net.Listener
	done   chan struct{} // closed by Close
	work   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	when  func(Request) bool
	what  Behaviour
	met   int
}

// Request is a command and its arguments, as they came.
type Request []string

// Start returns a Master in front of the server at the target address.
func Start(id, target string) (*Master, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("hostile master: %w", err)
	}
	m := &Master{id: id, target: target, ln: ln, done: make(chan struct{}), conns: map[net.Conn]bool{}}
	m.Behave()
	m.work.Go(m.accept)
	return m, nil
}

// Addr is where clients connect to.
func (m *Master) Addr() string { return m.ln.Addr().String() }

// Misbehave makes the master treat requests in its own way from now on.
func (m *Master) Misbehave(when func(Request) bool, what Behaviour) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.when, m.what, m.met = when, what, 0
}

// Behave makes it a good master again. Connections on which it misbehaved stay
// as they are.
func (m *Master) Behave() {
	m.Misbehave(func(Request) bool { return false }, Behaviour{})
}

// Met returns how often the master has misbehaved since it was told to.
func (m *Master) Met() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.met
}

// Close ends all connections.
func (m *Master) Close() {
	close(m.done)
	m.ln.Close()
	m.mu.Lock()
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	m.work.Wait()
}

func (m *Master) accept() {
	for {
		c, err := m.ln.Accept()
		if err != nil {
			return
		}
		m.work.Go(func() { m.serve(c) })
	}
}

// keep has Close end a connection, too. It reports whether it is not too late.
func (m *Master) keep(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.done:
		return false
	default:
	}
	m.conns[c] = true
	return true
}

func (m *Master) drop(c net.Conn) {
	c.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.conns, c)
}

func (m *Master) serve(c net.Conn) {
	defer m.drop(c)
	back, err := net.Dial("tcp", m.target)
	if err != nil {
		return
	}
	defer m.drop(back)
	if !m.keep(c) || !m.keep(back) {
		return
	}
	s := &session{m: m, conn: c, back: back, in: bufio.NewReader(c), replies: bufio.NewReader(back)}
	for s.one() == nil {
	}
}

// misbehaves returns what to do with a request instead of answering it.
func (m *Master) misbehaves(r Request) (Behaviour, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.when(r) {
		return Behaviour{}, false
	}
	m.met++
	return m.what, true
}

// session is a client's connection.
type session struct {
	m       *Master
	conn    net.Conn
	back    net.Conn
	in      *bufio.Reader
	replies *bufio.Reader
	pushing bool // subscribed: what the server sends is passed on as it comes
}

// one serves one request.
func (s *session) one() error {
	r, raw, err := readRequest(s.in)
	if err != nil {
		return err
	}
	if what, ok := s.m.misbehaves(r); ok {
		return what.act(s, r, raw)
	}
	reply, err := s.reply(r, raw)
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.conn, reply)
	return err
}

// reply is what a good master says. Of itself it speaks for itself: miniredis,
// for one, could not.
func (s *session) reply(r Request, raw string) (string, error) {
	switch strings.ToUpper(r[0]) {
	case "ROLE":
		return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", nil
	case "INFO":
		return bulk("redis_version:7.0.0\r\nrun_id:" + s.m.id + "\r\nuptime_in_seconds:86400\r\nrole:master\r\n"), nil
	case "SCRIPT":
		sum := sha1.Sum([]byte(r[len(r)-1]))
		return bulk(hex.EncodeToString(sum[:])), nil
	case "AUTH", "SELECT":
		return "+OK\r\n", nil
	case "SUBSCRIBE":
		if !s.pushing {
			s.pushing = true
			s.m.work.Go(func() { io.Copy(s.conn, s.replies) })
		}
	}
	if _, err := io.WriteString(s.back, raw); err != nil || s.pushing {
		return "", err
	}
	return readReply(s.replies)
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// readRequest returns a request, and its bytes.
func readRequest(r *bufio.Reader) (Request, string, error) {
	raw, err := readReply(r)
	if err != nil {
		return nil, "", err
	}
	var args Request
	lines := strings.SplitAfter(raw, "\r\n")
	n, err := strconv.Atoi(strings.TrimSpace(lines[0][1:]))
	if err != nil || n < 1 || raw[0] != '*' {
		return nil, "", fmt.Errorf("hostile master: request %.40q", raw)
	}
	rest := raw[len(lines[0]):]
	for range n {
		head, body, _ := strings.Cut(rest, "\r\n")
		size, err := strconv.Atoi(head[1:])
		if err != nil {
			return nil, "", err
		}
		args = append(args, body[:size])
		rest = body[size+2:]
	}
	return args, raw, nil
}

// readReply returns the bytes of one reply of a server that is trusted.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if line[0] != '$' && line[0] != '*' {
		return line, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || n < 0 {
		return line, err
	}
	whole := strings.Builder{}
	whole.WriteString(line)
	if line[0] == '$' {
		_, err := io.CopyN(&whole, r, int64(n)+2)
		return whole.String(), err
	}
	for range n {
		part, err := readReply(r)
		if err != nil {
			return "", err
		}
		whole.WriteString(part)
	}
	return whole.String(), nil
}
