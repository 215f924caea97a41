package simulate

import (
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// latency is how long messages take on a healthy network: mostly base to twice base,
// now and then much longer. In the tail, twice the delay is half as likely.
type latency struct {
	base time.Duration
	tail int           // thousandths of all messages
	max  time.Duration // of the tail
}

func (l latency) draw(dice *stream) time.Duration {
	d := dice.between(l.base, 2*l.base)
	if l.tail > 0 && dice.chance(l.tail) {
		late := 4 * time.Millisecond
		for b := dice.bits(); b&1 == 1 && late < l.max; b >>= 1 {
			late *= 2
		}
		d += dice.between(late/2, late)
	}
	return min(d, l.max)
}

// direction of a message, as the client sees it.
type direction int

const (
	outward direction = iota
	inward
)

// lane is one direction of a connection. What is sent first arrives first.
type lane struct {
	last    time.Duration // arrival of the latest message
	waiting []parcel      // held up by a cut, in order
	since   time.Duration // when the first of them was sent
}

// parcel is a message that a cut holds up.
type parcel struct {
	host *host
	life uint32
	what runner
}

// cable is the network between one client and one master. It outlives both: they may
// crash and start anew.
type cable struct {
	world   *world
	dice    *stream
	latency latency
	stats   *Stats
	cut     [2]int        // cuts that are in force, by direction
	slow    time.Duration // the most that a message is delayed on top
	mended  time.Duration // when a cut or a delay ended last
	conns   []*conn       // those that are open, or on which messages are held up

	busy time.Duration // when the last message arrives
}

// send puts a message on a lane, to arrive at a host.
func (w *cable) send(ln *lane, to *host, what runner, d direction) {
	if w.cut[d] > 0 {
		if len(ln.waiting) == 0 {
			ln.since = w.world.now
		}
		ln.waiting = append(ln.waiting, parcel{to, to.life, what})
		w.stats.heldUp++
		return
	}
	ln.last = max(ln.last, w.world.now+w.delay())
	w.busy = max(w.busy, ln.last)
	if ln.last > w.world.now+2*w.latency.base {
		w.world.rough = max(w.world.rough, ln.last)
	}
	w.world.at(ln.last, to, what)
}

func (w *cable) delay() time.Duration {
	d := w.latency.draw(w.dice)
	if w.slow > 0 {
		d += w.dice.between(w.slow/2, w.slow)
	}
	return d
}

// mend ends a cut in one direction. What was held up arrives now, also on
// connections that the client has closed meanwhile: the kernel keeps retransmitting.
// It does so ever less often, so that after a long cut an old connection may
// recover later than a new one is made.
func (w *cable) mend(d direction) {
	w.cut[d]--
	if w.cut[d] > 0 {
		return
	}
	for _, c := range w.conns {
		for _, ln := range c.lanes(d) {
			waiting := ln.waiting
			ln.waiting = nil
			if len(waiting) > 0 {
				ln.last = max(ln.last, w.world.now+w.dice.between(0, w.world.now-ln.since))
			}
			for _, p := range waiting {
				if p.life == p.host.life {
					w.send(ln, p.host, p.what, d)
				}
			}
		}
	}
}

// reset breaks the open connections. Some of what is under way is lost, in both
// directions.
func (w *cable) reset() {
	for _, c := range w.conns {
		if c.open {
			c.lost = w.world.now + w.dice.between(1, time.Millisecond)
			w.world.at(w.world.now+w.dice.between(1, time.Millisecond), c.host,
				action(func() { c.end.broken(c, node.ErrUnknown) }))
		}
	}
}

// accept adds a connection, and forgets those that are over.
func (w *cable) accept(c *conn) {
	keep := w.conns[:0]
	for _, old := range w.conns {
		if old.open || len(old.out.waiting) > 0 {
			keep = append(keep, old)
		}
	}
	w.conns = append(keep, c)
}

// holds reports whether something for the master is held up.
func (w *cable) holds() bool {
	for _, c := range w.conns {
		if len(c.out.waiting) > 0 {
			return true
		}
	}
	return false
}

// endpoint is told when its connection breaks.
type endpoint interface{ broken(c *conn, why error) }

// conn is one connection. Commands on it run in order and are answered in order.
// When it breaks, what is under way may still run, or not.
type conn struct {
	link   *link // of the fast transport; nil for the production transport
	end    endpoint
	wire   *cable
	host   *host  // the client's
	open   bool   // as the client sees it
	life   uint32 // of the master that accepted it
	out    lane
	in     lane
	hello  lane // subscriptions travel on a connection of their own
	news   lane
	ears   []*subscriber // subscriptions that were sent to the master
	lost   time.Duration // commands that arrive later are lost; zero: none is
	flight []*call       // unanswered, oldest first
}

func (c *conn) lanes(d direction) []*lane {
	if d == outward {
		return []*lane{&c.out, &c.hello}
	}
	return []*lane{&c.in, &c.news}
}

// hangUp tells the client that the connection is gone.
func (c *conn) hangUp() {
	c.wire.send(&c.in, c.host, action(func() { c.end.broken(c, node.ErrUnknown) }), inward)
}

// call is one command on its way: first an event at the master, then one at the
// client.
type call struct {
	conn  *conn
	cmd   *wire.Command
	ask   func(m *master) (any, *wire.ServerError) // instead of cmd
	done  func(wire.Reply)
	sent  time.Duration // monotonic
	until time.Duration // of a release that is sent again: when it is no longer needed
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

func (c *call) run() {
	if c.ran {
		c.conn.link.answered(c)
		return
	}
	cn := c.conn
	l := cn.link
	if cn.lost > 0 && l.world.now >= cn.lost {
		return
	}
	if cn.life != l.master.host.life {
		cn.hangUp() // the master has started anew and knows no such connection
		return
	}
	c.ran = true
	if c.ask != nil {
		c.value, c.err = c.ask(l.master)
	} else {
		if !cn.open {
			l.client.stats.ranLate++
		}
		if c.value, c.err = l.master.exec(l.client.index, c.cmd); c.err == nil {
			l.master.check.ran(l.master, l.client, c.cmd, !cn.open)
		}
		if c.cmd.Op.Votes() {
			c.marker, c.at = l.master.marker(), time.UnixMicro(l.master.keys.Now())
			c.replica, c.origin = l.master.keys.Replica, l.master.keys.Origin
		}
		l.world.mix(digest(c.value))
	}
	if cn.open && (cn.lost == 0 || l.world.now < cn.lost) {
		l.wire.send(&cn.in, l.host, c, inward)
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
	if l.believes(proof) {
		s.listener.Heard(text)
		return
	}
	s.listener.Doubted(text)
}

func (s *subscriber) listens() bool {
	return !s.ended && s.conn.open && s.conn == s.subscription.conn
}

// leave tells the master that nobody listens any more.
func (s *subscriber) leave() {
	l := s.conn.link
	l.wire.send(&s.conn.hello, l.master.host, action(func() { s.gone = true }), outward)
}
