package fleet

import (
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// direction of a message, as the client sees it.
type direction int

const (
	Outward direction = iota
	Inward
)

// lane is one direction of a connection. Messages arrive in the order of sending.
type lane struct {
	last    time.Duration // arrival of the latest message
	waiting []parcel      // held up by a cut, in order
	since   time.Duration // when the first of them was sent
}

// parcel is a message that a cut holds up.
type parcel struct {
	host *world.Host
	life uint32
	what world.Runner
}

// Cable is the network between one client and one master. It outlives both: they may
// crash and start anew.
type Cable struct {
	world   *world.World
	dice    *world.Dice
	latency plan.Latency
	stats   *tally.Stats
	Cut     [2]int        // cuts that are in force, by direction
	Slow    time.Duration // the most that a message is delayed on top
	Mended  time.Duration // when a cut or a delay ended last
	conns   []*conn       // connections that are open or have messages held up

	Busy time.Duration // when the last message arrives
}

// send puts a message on a lane, to arrive at a host.
func (w *Cable) send(ln *lane, to *world.Host, what world.Runner, d direction) {
	if w.Cut[d] > 0 {
		if len(ln.waiting) == 0 {
			ln.since = w.world.Now
		}
		ln.waiting = append(ln.waiting, parcel{to, to.Life, what})
		w.stats.HeldUp++
		return
	}
	ln.last = max(ln.last, w.world.Now+w.delay())
	w.Busy = max(w.Busy, ln.last)
	if ln.last > w.world.Now+2*w.latency.Base {
		w.world.Rough = max(w.world.Rough, ln.last)
	}
	w.world.At(ln.last, to, what)
}

func (w *Cable) delay() time.Duration {
	d := w.latency.Draw(w.dice)
	if w.Slow > 0 {
		d += w.dice.Between(w.Slow/2, w.Slow)
	}
	return d
}

// Mend ends a cut in one direction. The held-up messages arrive now, also on connections that
// the client has closed meanwhile: the kernel keeps retransmitting. The kernel retransmits ever
// less often, so that after a long cut an old connection may recover later than a new one is
// made.
func (w *Cable) Mend(d direction) {
	w.Cut[d]--
	if w.Cut[d] > 0 {
		return
	}
	for _, c := range w.conns {
		for _, ln := range c.lanes(d) {
			waiting := ln.waiting
			ln.waiting = nil
			if len(waiting) > 0 {
				ln.last = max(ln.last, w.world.Now+w.dice.Between(0, w.world.Now-ln.since))
			}
			for _, p := range waiting {
				if p.life == p.host.Life {
					w.send(ln, p.host, p.what, d)
				}
			}
		}
	}
}

// Reset breaks the open connections. Some of the messages under way are lost, in both
// directions.
func (w *Cable) Reset() {
	for _, c := range w.conns {
		if c.open {
			c.lost = w.world.Now + w.dice.Between(1, time.Millisecond)
			w.world.At(w.world.Now+w.dice.Between(1, time.Millisecond), c.host,
				world.Action(func() { c.end.broken(c, node.ErrUnknown) }))
		}
	}
}

// accept adds a connection, and forgets the connections that are over.
func (w *Cable) accept(c *conn) {
	keep := w.conns[:0]
	for _, old := range w.conns {
		if old.open || len(old.out.waiting) > 0 {
			keep = append(keep, old)
		}
	}
	w.conns = append(keep, c)
}

// holds reports whether something for the master is held up.
func (w *Cable) holds() bool {
	for _, c := range w.conns {
		if len(c.out.waiting) > 0 {
			return true
		}
	}
	return false
}

// endpoint is the client's end of a connection. broken is called when the connection breaks.
type endpoint interface{ broken(c *conn, why error) }

// conn is one connection. Commands on it run in order and are answered in order. When a
// connection breaks, a command under way may still run, or not.
type conn struct {
	link   *Link // of the fast transport; nil for the production transport
	end    endpoint
	wire   *Cable
	host   *world.Host // the client's
	open   bool        // as the client sees it
	life   uint32      // of the master that accepted it
	out    lane
	in     lane
	hello  lane // subscriptions travel on a connection of their own
	news   lane
	ears   []*subscriber // subscriptions that were sent to the master
	lost   time.Duration // commands that arrive later are lost; zero: none is
	flight []*call       // unanswered, oldest first

	placing bool // where the master's clock is was written, and the answer is still to come
}

func (c *conn) lanes(d direction) []*lane {
	if d == Outward {
		return []*lane{&c.out, &c.hello}
	}
	return []*lane{&c.in, &c.news}
}

// hangUp tells the client that the connection is gone.
func (c *conn) hangUp() {
	c.wire.send(&c.in, c.host, world.Action(func() { c.end.broken(c, node.ErrUnknown) }), Inward)
}

// call is one command on its way: first an event at the master, then one at the
// client.
type call struct {
	conn  *conn
	cmd   *wire.Command
	ask   func(m *Master) (any, *wire.ServerError) // instead of cmd
	done  func(wire.Reply)
	sent  time.Duration // monotonic
	until time.Duration // of a release that is sent again: the end of its use
	ran   bool
	value any
	err   *wire.ServerError

	// These are read right after a vote, as the real transport does.
	marker  string
	at      time.Time
	replica bool
	origin  string
}

// asked returns the command that the library waits for an answer to; nil if there is
// none, for a release that is sent once more.
func (c *call) asked() *wire.Command {
	if c.until > 0 {
		return nil
	}
	return c.cmd
}

func (c *call) Run() {
	if c.ran {
		c.conn.link.answered(c)
		return
	}
	cn := c.conn
	l := cn.link
	if cn.lost > 0 && l.world.Now >= cn.lost {
		return
	}
	if cn.life != l.Master.Host.Life {
		cn.hangUp() // the master has started anew and knows no such connection
		return
	}
	c.ran = true
	if c.ask != nil {
		c.value, c.err = c.ask(l.Master)
	} else {
		if !cn.open {
			l.Client.Stats.RanLate++
		}
		if c.value, c.err = l.Master.exec(l.Client.Index, c.cmd); c.err == nil {
			l.Master.Watch.Ran(l.Master, l.Client.Index, c.cmd, !cn.open)
		}
		if c.cmd.Op.Votes() {
			c.marker, c.at = l.Master.Marker(), time.UnixMicro(l.Master.Keys.Now())
			c.replica, c.origin = l.Master.Keys.Replica, l.Master.Keys.Origin
		}
		l.world.Mix(digest(c.value))
	}
	if cn.open && (cn.lost == 0 || l.world.Now < cn.lost) {
		l.Wire.send(&cn.in, l.host, c, Inward)
	}
}

// digest makes a reply a number for the state hash.
func digest(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)*2 + 1
	case string:
		return uint64(len(v))
	case []byte:
		return uint64(len(v)) << 32
	case nil:
		return 7
	}
	return 11
}

// subscription is a channel that a client listens to.
type subscription struct {
	conn     *conn // on which it was last asked for
	heard    *conn // on which it was last confirmed
	channel  string
	listener node.Listener
	ended    bool
}

// subscriber is a subscription as the master knows it. The master counts it and sends
// to it until it hears that the client is gone, which can be long after.
type subscriber struct {
	*subscription
	conn *conn
	gone bool
}

// confirmed tells the listener that the master knows of the subscription.
func (s *subscriber) confirmed() {
	if s.listens() {
		s.heard = s.conn
		s.listener.Missed()
	}
}

// deliver passes a message on, if the client still listens on that connection. What
// the guard does not believe is passed on as a doubt.
func (s *subscriber) deliver(message string) {
	if !s.listens() {
		return
	}
	proof, text, _ := strings.Cut(message, "\n")
	l := s.conn.link
	l.Client.weak.Hears(text)
	if l.Believes(proof) {
		s.listener.Heard(text)
		return
	}
	s.listener.Doubted(text)
}

func (s *subscriber) listens() bool {
	return !s.ended && s.conn.open && s.conn == s.subscription.conn
}

// leave ends the subscription at the master.
func (s *subscriber) leave() {
	l := s.conn.link
	l.Wire.send(&s.conn.hello, l.Master.Host, world.Action(func() { s.gone = true }), Outward)
}

// call returns a free call.
func (c *Client) call() *call {
	n := len(c.calls) - 1
	if n < 0 {
		return new(call)
	}
	free := c.calls[n]
	c.calls = c.calls[:n]
	return free
}
