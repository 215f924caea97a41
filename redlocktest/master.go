package redlocktest

import (
	"bufio"
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// master is one Redis master: a miniredis that runs commands in the goroutine of
// the caller, one at a time.
type master struct {
	name string

	mu      sync.Mutex
	fault   fault
	server  *miniredis.Miniredis
	peer    *server.Peer
	replies *bytes.Buffer
	reader  redis.Conn
	hearers map[*hearer]struct{}
	heard   []message // sent by the command that runs
}

// fault is the fault of a master.
type fault int

const (
	running fault = iota
	dead          // commands fail immediately
	hung          // commands wait
)

// hearer is one subscription.
type hearer struct {
	channel string
	node.Listener
}

// message is what one subscription is to be told.
type message struct {
	to   *hearer
	text string
}

func newMaster(t testing.TB, name string) *master {
	m := &master{name: name, server: miniredis.NewMiniRedis(), replies: &bytes.Buffer{}, hearers: map[*hearer]struct{}{}}
	m.server.ClockTTL(true)
	// Dialling starts the server without a port. It is asked without the
	// connection, which would need goroutines.
	conn, err := m.server.Dial()
	if err != nil {
		t.Fatalf("redlocktest: start a master: %v", err)
	}
	conn.Close()
	m.server.Server().SetPreHook(m.publish)
	m.peer = server.NewPeer(bufio.NewWriter(m.replies))
	m.reader = redis.NewConn(replies{Buffer: m.replies}, 0, 0)
	return m
}

func (m *master) close() { m.server.Close() }

func (m *master) set(f fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *master) state() fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fault
}

// run runs a command at an instant of the client's clock, and returns the
// messages that it sends.
func (m *master) run(cmd *wire.Command, now time.Time) (wire.Reply, []message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = nil
	m.server.SetTime(now)
	m.server.Server().Dispatch(m.peer, words(cmd))
	m.peer.Flush()
	value, err := m.reader.Receive()
	if refusal, ok := err.(redis.Error); ok {
		return wire.Reply{Err: &wire.Error{Node: m.name, Op: cmd.Op, Err: wire.Server(string(refusal))}}, m.heard
	}
	return wire.Reply{Value: value}, m.heard
}

// words is a command as Redis reads it.
func words(cmd *wire.Command) []string {
	name := []string{cmd.Name}
	if cmd.Script != nil {
		name = []string{"EVAL", cmd.Script.Source, strconv.Itoa(len(cmd.Keys))}
	}
	return append(append(name, cmd.Keys...), cmd.Args...)
}

// publish takes the place of the server's PUBLISH, so that messages are
// delivered when the command that sends them has ended.
func (m *master) publish(c *server.Peer, cmd string, args ...string) bool {
	if cmd != "PUBLISH" || len(args) != 2 {
		return false
	}
	before := len(m.heard)
	_, text, _ := strings.Cut(args[1], "\n") // behind the marker, which these masters have none of
	for h := range m.hearers {
		if h.channel == args[0] {
			m.heard = append(m.heard, message{h, text})
		}
	}
	c.WriteInt(len(m.heard) - before)
	return true
}

func (m *master) subscribe(channel string, l node.Listener) (cancel func()) {
	h := &hearer{channel, l}
	m.mu.Lock()
	m.hearers[h] = struct{}{}
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.hearers, h)
	}
}

// forget loses every key.
func (m *master) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.FlushAll()
}

func (m *master) delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Del(key)
}

// value returns the stored value at an instant of the clients' clock.
func (m *master) value(key string, now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.SetTime(now)
	value, err := m.server.Get(key)
	if err != nil {
		return "" // it is not stored
	}
	return value
}

// locks returns the keys that are held locks at an instant of the clients' clock, and their
// values.
func (m *master) locks(now time.Time) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.SetTime(now)
	locks := map[string]string{}
	for _, key := range m.server.Keys() {
		if value, err := m.server.Get(key); err == nil && !strings.Contains(key, reserved) && !strings.HasPrefix(value, kept) {
			locks[key] = value
		}
	}
	return locks
}

// reserved is in the name of every key beside the locks.
const reserved = "redlock:"

// kept stands before the value of a lock that was released, and stays by redlock.AtLeast.
const kept = "!"

// replies is a connection from which the server's replies are read.
type replies struct {
	*bytes.Buffer
}

func (replies) Close() error                     { return nil }
func (replies) LocalAddr() net.Addr              { return nil }
func (replies) RemoteAddr() net.Addr             { return nil }
func (replies) SetDeadline(time.Time) error      { return nil }
func (replies) SetReadDeadline(time.Time) error  { return nil }
func (replies) SetWriteDeadline(time.Time) error { return nil }
