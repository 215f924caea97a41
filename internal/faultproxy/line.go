package faultproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// Line is a link of a certain length to a server: what enters at one end leaves
// at the other a set time later, and it breaks nothing. It does not look at
// commands, so that it costs little, and is as exact as the system's timers.
//
// Its length delays bytes, not their senders: any number of requests are under
// way together, and they arrive in the order in which they were sent. To
// connect takes no time.
type Line struct {
	carrier  *Carrier
	target   string
	port     *loopback.Port
	listener net.Listener
	delay    atomic.Int64  // one way
	over     chan struct{} // closed by Close
	work     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// RunLine starts a line without length to the server at target, a host:port,
// that lives until Close.
func RunLine(c *Carrier, target string) (*Line, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	listener, err := net.Listen("tcp", port.Addr())
	if err != nil {
		port.Close()
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	l := &Line{carrier: c, target: target, port: port, listener: listener, over: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	l.work.Go(l.accept)
	return l, nil
}

// Addr returns the host:port for clients.
func (l *Line) Addr() string { return l.port.Addr() }

// SetDelay has everything that enters from now on, at either end, arrive d
// later: half of the round trip.
func (l *Line) SetDelay(d time.Duration) { l.delay.Store(int64(d)) }

// Close breaks all connections and refuses new ones. Bytes under way are lost.
func (l *Line) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	close(l.over)
	l.listener.Close()
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.work.Wait()
	l.port.Close()
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.connect(client.(*net.TCPConn)) })
	}
}

// connect serves a client until both ends have closed.
func (l *Line) connect(client *net.TCPConn) {
	if !l.keep(client) {
		return
	}
	defer l.forget(client)
	conn, err := net.Dial("tcp", l.target)
	if err != nil {
		client.SetLinger(0) // as a server that is gone: connection reset
		return
	}
	server := conn.(*net.TCPConn)
	if !l.keep(server) {
		return
	}
	defer l.forget(server)
	ended := make(chan struct{}, directions)
	l.work.Go(func() { l.take(client, server, ended) })
	l.work.Go(func() { l.take(server, client, ended) })
	for range directions {
		select {
		case <-ended:
		case <-l.over:
			return
		}
	}
}

// take reads what enters at one end until that closes. It writes to ended when
// all of it has arrived.
func (l *Line) take(from io.Reader, to *net.TCPConn, ended chan<- struct{}) {
	buf := make([]byte, 64<<10)
	var due time.Time
	for {
		n, err := from.Read(buf)
		if arrives := time.Now().Add(time.Duration(l.delay.Load())); arrives.After(due) { // a line that got shorter: nothing overtakes
			due = arrives
		}
		if n > 0 {
			l.carrier.take(&parcel{due: due, to: to, data: append([]byte(nil), buf[:n]...)})
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				to.SetLinger(0) // reset here, reset there
			}
			l.carrier.take(&parcel{due: due, to: to, ended: ended})
			return
		}
	}
}

// keep reports false, and closes the connection, when the line is closed.
func (l *Line) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Line) forget(c net.Conn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
