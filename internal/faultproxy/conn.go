package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// conn is a client's connection and the one to the server behind it.
type conn struct {
	proxy   *Proxy
	hanging bool // without a server behind it
	client  *net.TCPConn
	life    context.Context // ended by reset
	end     context.CancelFunc
	over    [directions]chan struct{} // closed when the sender of a direction has closed its side

	mu         sync.Mutex
	server     *net.TCPConn // nil until dialled
	unanswered []Request    // sent to the server, oldest first
	subscribed bool         // replies name themselves from here on
}

func newConn(p *Proxy, client *net.TCPConn) *conn {
	c := &conn{proxy: p, client: client}
	c.life, c.end = context.WithCancel(context.Background())
	for dir := range c.over {
		c.over[dir] = make(chan struct{})
	}
	return c
}

// serve returns when the connection has ended.
func (c *conn) serve() {
	defer c.forget()
	var work sync.WaitGroup
	defer work.Wait()
	if c.hanging {
		requests := c.stream(Requests)
		requests.lost = true
		requests.run(&work, c.client, nil)
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(c.life, "tcp", c.proxy.target)
	if err != nil || !c.attach(server.(*net.TCPConn)) {
		c.proxy.change(func() { c.proxy.stats.Open-- })
		c.reset()
		return
	}
	c.stream(Requests).run(&work, c.client, c.server)
	c.stream(Replies).run(&work, c.server, c.client)
}

// attach reports false when the connection was reset meanwhile.
func (c *conn) attach(server *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		server.Close()
		return false
	}
	c.server = server
	return true
}

// reset closes both ends with RST instead of FIN, and ends both streams.
func (c *conn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return
	}
	c.end()
	for _, end := range []*net.TCPConn{c.client, c.server} {
		if end != nil {
			end.SetLinger(0)
			end.Close()
		}
	}
}

func (c *conn) forget() {
	c.end()
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
	c.proxy.change(func() { delete(c.proxy.conns, c) })
}

// sent notes a command that the server will answer.
func (c *conn) sent(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Name {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		c.subscribed = true // one answer for each channel, and messages between them
	default:
		if !c.subscribed {
			c.unanswered = append(c.unanswered, r)
		}
	}
}

// answered returns the command that a value from the server belongs to.
func (c *conn) answered(v value) Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unanswered) == 0 {
		return request(v)
	}
	r := c.unanswered[0]
	c.unanswered = c.unanswered[1:]
	return r
}

// stream is one direction of a connection: one goroutine reads and queues, so
// that the sender never notices a fault by itself, and one writes.
type stream struct {
	conn *conn
	dir  Direction
	lost bool // only for the writer: something was dropped, so all the rest is
	deaf bool // only for the writer: the receiver is gone

	mu    sync.Mutex
	queue []frame
	more  chan struct{} // has room for one: the queue is not empty
}

// frame is a whole command or reply on its way.
type frame struct {
	raw     []byte // nil: the sender has closed its side
	command Request
	due     time.Time
}

func (c *conn) stream(dir Direction) *stream {
	return &stream{conn: c, dir: dir, more: make(chan struct{}, 1)}
}

func (s *stream) run(work *sync.WaitGroup, from, to *net.TCPConn) {
	work.Go(func() { s.read(from) })
	work.Go(func() { s.write(to) })
}

func (s *stream) read(from *net.TCPConn) {
	reader := bufio.NewReader(from)
	for {
		v, raw, err := readValue(reader)
		if errors.Is(err, errProtocol) {
			s.conn.reset()
		}
		if err != nil {
			break
		}
		s.push(frame{raw: raw, command: s.arrived(v), due: time.Now().Add(s.delay())})
	}
	close(s.conn.over[s.dir])
	if s.dir == Requests {
		s.conn.proxy.change(func() { s.conn.proxy.stats.Open-- })
	}
	s.push(frame{due: time.Now().Add(s.delay())})
}

func (s *stream) arrived(v value) Request {
	if s.dir == Replies {
		return s.conn.answered(v)
	}
	r := request(v)
	s.conn.proxy.change(func() { s.conn.proxy.stats.Received[r.Name]++ })
	return r
}

func (s *stream) delay() time.Duration {
	s.conn.proxy.mu.Lock()
	defer s.conn.proxy.mu.Unlock()
	return s.conn.proxy.delay[s.dir]
}

// write ends with the stream's last frame, or when the connection is reset.
func (s *stream) write(to *net.TCPConn) {
	for {
		f, ok := s.pop()
		if !ok {
			return
		}
		s.pass(f)
		switch {
		case s.conn.life.Err() != nil:
			return
		case f.raw == nil:
			s.finish(to)
			return
		case !s.lost && !s.deaf:
			s.send(f, to)
		}
	}
}

// pass returns when the frame has come through all faults.
func (s *stream) pass(f frame) {
	if s.lost {
		return
	}
	s.sleep(time.Until(f.due))
	if f.raw != nil {
		if r := s.conn.proxy.take(s.dir, f.command); r != nil {
			r.act(s)
		}
	}
	if !s.lost {
		s.gate()
	}
}

// gate waits while the direction is cut.
func (s *stream) gate() {
	p := s.conn.proxy
	for {
		p.mu.Lock()
		cut, drop, changed := p.cut[s.dir], p.drop[s.dir], p.changed
		p.mu.Unlock()
		if !cut {
			s.lost = drop
			return
		}
		if !s.await(changed) {
			return
		}
	}
}

func (s *stream) send(f frame, to *net.TCPConn) {
	if s.dir == Requests { // before the write: the answer may come before it returns
		s.conn.sent(f.command)
		s.conn.proxy.change(func() { s.conn.proxy.stats.Delivered[f.command.Name]++ })
	}
	if _, err := to.Write(f.raw); err != nil {
		s.deaf = true // the other stream tells the sender
	}
}

// finish tells the receiver that the sender has closed its side. If the stream has lost
// something, the receiver never hears of it and goes on until it closes by itself.
func (s *stream) finish(to *net.TCPConn) {
	switch {
	case to == nil:
	case s.lost:
		s.await(s.conn.over[1-s.dir])
	default:
		to.CloseWrite()
	}
}

func (s *stream) push(f frame) {
	s.mu.Lock()
	s.queue = append(s.queue, f)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// pop waits for the oldest frame and reports false when the connection is reset.
func (s *stream) pop() (frame, bool) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			f := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return f, true
		}
		s.mu.Unlock()
		if !s.await(s.more) {
			return frame{}, false
		}
	}
}

// await waits for c and reports false when the connection is reset.
func (s *stream) await(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-s.conn.life.Done():
		return false
	}
}

func (s *stream) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.conn.life.Done():
	}
}
