// Package faultproxy is a TCP proxy in front of one Redis server that breaks
// the connection between client and server on demand. It knows where commands
// and replies begin and end, so that a fault hits a chosen command.
//
//	proxy := faultproxy.Start(t, server.Addr()) // clients use proxy.Addr()
//
//	// The server does the SET, and its client never hears of it.
//	proxy.DropNext(faultproxy.Replies, faultproxy.Command("SET", "name"))
//
//	// A command is on its way for as long as the test wants.
//	hold := proxy.HoldNext(faultproxy.Requests, faultproxy.Command("SET", "name"))
//	<-hold.Held()
//	...
//	hold.Release()
//
//	// The link to the server is cut one way, and comes back.
//	proxy.Cut(faultproxy.Requests)
//	...
//	proxy.Heal()
//
// A fault does what TCP can do. Each direction of a connection is a stream:
// a delayed or held frame delays everything behind it, and once something is
// dropped, everything behind it in that direction of that connection is
// dropped too, as when a peer is gone without a word. A reply is never taken
// for that of another command.
package faultproxy

import (
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// Direction is one way through the proxy.
type Direction int

const (
	Requests Direction = iota // client to server
	Replies                   // server to client, and pub/sub messages
	directions
)

// Proxy forwards connections to a server. All methods are safe for concurrent
// use, and faults can be combined.
type Proxy struct {
	target string
	port   *loopback.Port
	work   sync.WaitGroup // the connections' goroutines

	mu        sync.Mutex
	closed    bool
	entrance  *entrance // nil while connections are refused
	hanging   bool
	delay     [directions]time.Duration
	cut, drop [directions]bool
	rules     []*rule
	conns     map[*conn]struct{}
	stats     Stats
	changed   chan struct{} // closed and replaced whenever something above changes
}

// TB is the part of testing.TB that this package uses, so that commands do not
// link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start starts a proxy to the server at target, a host:port, that lives until
// t ends. It fails t if it cannot. The server need not run yet.
func Start(t TB, target string) *Proxy {
	t.Helper()
	p, err := Run(target)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Run starts a proxy that lives until Close.
func Run(target string) (*Proxy, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{
		target: target, port: port, conns: map[*conn]struct{}{}, changed: make(chan struct{}),
		stats: Stats{Received: map[string]int{}, Delivered: map[string]int{}},
	}
	if err := p.open(); err != nil {
		port.Close()
		return nil, err
	}
	return p, nil
}

// Addr returns the host:port for clients. It never changes.
func (p *Proxy) Addr() string { return p.port.Addr() }

// Close resets all connections and refuses new ones from then on.
func (p *Proxy) Close() {
	p.change(func() { p.closed = true })
	p.shut()
	p.Reset()
	p.work.Wait()
	p.port.Close()
}

// Delay has everything that enters in a direction from now on arrive d later.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.change(func() { p.delay[dir] = d })
}

// Cut stops the given directions, both if none is given: nothing arrives, as
// behind a broken link. Frames sent meanwhile arrive after Heal, also if its
// sender has closed the connection by then.
func (p *Proxy) Cut(dirs ...Direction) {
	p.change(func() { mark(&p.cut, dirs) })
}

// Drop loses everything in the given directions, both if none is given.
// Connections that lost something never work again in that direction.
func (p *Proxy) Drop(dirs ...Direction) {
	p.change(func() { mark(&p.drop, dirs) })
}

// Hang accepts new connections and never answers them, not even after Heal.
// Connections that exist go on.
func (p *Proxy) Hang() { p.change(func() { p.hanging = true }) }

// Refuse refuses new connections. Connections that exist go on.
func (p *Proxy) Refuse() { p.shut() }

// Reset breaks all connections that exist: both ends see "connection reset",
// and frames under way are lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	conns := maps.Clone(p.conns)
	p.mu.Unlock()
	for c := range conns {
		c.reset()
	}
}

// Heal ends Delay, Cut, Drop, Hang and Refuse, and forgets the faults for a
// next command that has not come. A dropped frame stays lost, and a
// held one stays held.
func (p *Proxy) Heal() {
	p.change(func() {
		p.delay, p.cut, p.drop = [directions]time.Duration{}, [directions]bool{}, [directions]bool{}
		p.hanging, p.rules = false, nil
	})
	if err := p.open(); err != nil { // the port is ours: only a machine out of files gets here
		panic(err)
	}
}

// Stats is what a proxy has seen.
type Stats struct {
	Received  map[string]int // commands that clients sent, by upper-case name
	Delivered map[string]int // commands that went on to the server
	Accepted  int            // connections that were accepted
	Open      int            // connections that clients have not closed
}

// Stats returns the counts so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := p.stats
	stats.Received, stats.Delivered = maps.Clone(stats.Received), maps.Clone(stats.Delivered)
	return stats
}

// change runs f under the mutex and wakes all that wait for a change.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func mark(state *[directions]bool, dirs []Direction) {
	if len(dirs) == 0 {
		dirs = []Direction{Requests, Replies}
	}
	for _, dir := range dirs {
		state[dir] = true
	}
}

// entrance is a listener and the goroutine that accepts from it.
type entrance struct {
	net.Listener
	done chan struct{}
}

// open listens, unless the proxy does so already or is closed.
func (p *Proxy) open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entrance != nil || p.closed {
		return nil
	}
	listener, err := net.Listen("tcp", p.port.Addr())
	if err != nil {
		return fmt.Errorf("faultproxy: %w", err)
	}
	p.entrance = &entrance{listener, make(chan struct{})}
	go p.accept(p.entrance)
	return nil
}

// shut returns when new connections are refused.
func (p *Proxy) shut() {
	p.mu.Lock()
	e := p.entrance
	p.entrance = nil
	p.mu.Unlock()
	if e != nil {
		e.Close()
		<-e.done
	}
}

func (p *Proxy) accept(e *entrance) {
	defer close(e.done)
	for {
		client, err := e.Accept()
		if err != nil {
			return
		}
		c := newConn(p, client.(*net.TCPConn))
		p.change(func() {
			c.hanging = p.hanging
			p.conns[c] = struct{}{}
			p.stats.Accepted++
			p.stats.Open++
		})
		p.work.Go(c.serve)
	}
}
