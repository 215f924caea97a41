package simulate

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// link is a client's end of its connection to one master, by the fast transport: a
// node.Node that follows the rules of package node's own transport. A test holds
// the two equal.
type link struct {
	world  *world
	client *client
	host   *host // the client's
	master *master
	wire   *cable
	guard  *node.Guard
	look   *wire.Command // reads the marker

	conn     *conn // nil: not connected
	greeted  bool  // the handshake is through: commands are accepted
	closed   bool
	looking  bool // a heartbeat is under way
	runID    string
	stored   string      // the marker that was last read
	marker   node.Marker // stored, parsed
	redial   node.Redial
	began    time.Time     // what the master's clock said when our monotonic clock was at zero; zero: not known
	up       time.Duration // when the last handshake came through, by the monotonic clock
	since    time.Duration // and in true time
	kept     bool          // it keeps the master from voting without a reason, which was reported
	watched  bool          // a timer watches the oldest call
	silent   bool          // the oldest call has waited too long: acquires are not sent meanwhile
	pending  *node.PendingReleases
	subs     []*subscription
	rest     time.Duration // of the quarantine, when it was last looked at
	forgot   func()        // called when the master has forgotten what it knew; may be nil
	loss     bool          // the handshake found that it has
	returned func()        // called when the master takes commands again; may be nil
	paid     func()        // called when the master is owed no release any more; may be nil
}

// The timing and the limits of the real transport.
const (
	silence   = time.Second           // after which a connection with unanswered calls is given up
	hanging   = 75 * time.Millisecond // after which it is sent no acquires
	heartbeat = time.Second
	minPause  = 20 * time.Millisecond // before the first reconnect
	maxPause  = 500 * time.Millisecond
	maxOwed   = 65536
)

func newLink(c *client, m *master, w *cable) *link {
	l := &link{
		world:   c.world,
		client:  c,
		host:    c.host,
		master:  m,
		wire:    w,
		pending: node.NewPendingReleases(maxOwed),
		redial:  node.Redial{Min: minPause, Max: maxPause},
		guard:   node.NewGuard(c.guard, c.host.clock, c.group),
		look:    wire.Look(""),
	}
	l.dial()
	l.host.clock.after(l.wire.dice.between(0, heartbeat), l.beat)
	return l
}

// Addr implements node.Node.
func (l *link) Addr() string { return l.master.host.name }

// Do implements node.Node.
func (l *link) Do(cmd *wire.Command, done func(wire.Reply)) { l.client.weak.Do(cmd, done, l.do) }

func (l *link) do(cmd *wire.Command, done func(wire.Reply)) {
	if l.host.down {
		return // a crash unwinds the client's code, which reaches nobody any more
	}
	if l.client.steps.Free() {
		l.client.step()
	}
	l.client.gives(l.master.index, cmd)
	if !l.greeted {
		l.pending.NotSent(node.PendingRelease{Cmd: cmd}, node.ErrDown)
		l.client.hand(l.master.index, cmd, done, l.failure(cmd.Op, node.ErrDown))
		return
	}
	cmd, err := l.guard.Allow(cmd)
	if err != nil {
		l.client.stats.quarantined++
		l.client.check.keptOut(l)
		l.client.hand(l.master.index, cmd, done, l.failure(cmd.Op, err))
		return
	}
	if l.hangs() && l.pending.Spare(cmd) {
		l.client.hand(l.master.index, cmd, done, l.failure(cmd.Op, node.ErrSilent))
		return
	}
	l.put(call{cmd: cmd, done: done})
}

// hangs reports whether the master has left a call unanswered for too long.
func (l *link) hangs() bool {
	if !l.silent && len(l.conn.flight) > 0 {
		l.silent = l.host.clock.Monotonic()-l.conn.flight[0].sent > hanging
	}
	return l.silent
}

// listen lets acquires and repairs through again.
func (l *link) listen() {
	l.silent = false
	l.pending.Heard()
}

// missed makes every subscriber ask again: the master grants again, and may have
// published what the subscriber did not hear.
func (l *link) missed() {
	for _, s := range slices.Clone(l.subs) {
		s.listener.Missed()
	}
}

// judge gives the guard new evidence. Subscribers are told if that ends a
// quarantine.
func (l *link) judge(e node.Evidence) node.Verdict {
	before := l.guard.Rest()
	v := l.guard.Look(e)
	if v.Rest == 0 && l.rest > 0 && before == 0 {
		l.rest = 0
		l.missed()
	}
	l.rest = v.Rest
	return v
}

func (l *link) failure(op wire.Op, err error) wire.Reply {
	return wire.Reply{Err: &wire.Error{Node: l.Addr(), Op: op, Err: err}}
}

// put sends a call on the open connection.
func (l *link) put(what call) {
	c := l.world.call()
	*c = what
	c.conn = l.conn
	c.sent = l.host.clock.Monotonic()
	l.conn.flight = append(l.conn.flight, c)
	l.watch()
	l.wire.send(&l.conn.out, l.master.host, c, outward)
}

// answered hands a reply to its caller.
func (l *link) answered(c *call) {
	cn := c.conn
	if !cn.open {
		return
	}
	if len(cn.flight) == 0 || cn.flight[0] != c {
		panic("simulate: a reply out of order")
	}
	heard := l.silent
	if heard {
		l.listen()
	}
	last := len(cn.flight) - 1
	copy(cn.flight, cn.flight[1:]) // it is short, and reslicing would make append reallocate all the time
	cn.flight[last] = nil
	cn.flight = cn.flight[:last]
	r := wire.Reply{Value: c.value}
	if c.err == nil && c.cmd != nil && c.cmd.Op == wire.OpRelease && !node.Releases(c.value) {
		err := &wire.ReplyError{Value: c.value}
		l.owe(c, err)
		r = l.failure(wire.OpRelease, err)
	}
	if c.err != nil {
		var op wire.Op
		if c.cmd != nil {
			op = c.cmd.Op
			l.owe(c, c.err)
		}
		r = l.failure(op, c.err)
	}
	if r.Err == nil && c.cmd != nil && c.cmd.Op.Votes() {
		r = l.weigh(c, r)
	}
	cmd, done := c.asked(), c.done
	pays := c.cmd != nil && c.cmd.Op == wire.OpRelease
	*c = call{}
	l.world.calls = append(l.world.calls, c)
	l.client.hand(l.master.index, cmd, done, r)
	if pays {
		l.tellPaid()
	}
	if heard {
		l.missed() // what waiters asked while it was silent was not sent
	}
}

// weigh lets the guard judge a vote by the marker and the time that came with it.
func (l *link) weigh(c *call, r wire.Reply) wire.Reply {
	timely, remained := l.guard.TimelyVote(c.at, c.sent), l.guard.Remained(c.replica, c.origin)
	vouched := timely && remained && l.guard.Vouched(c.marker)
	if known := l.guard.Accepted(); known != "" && (!timely || !remained || c.marker != known) {
		l.lookAgain()
	}
	young, err := l.guard.Weigh(c.cmd.Op, vouched)
	if err != nil {
		return l.failure(c.cmd.Op, err)
	}
	r.Young = young
	return r
}

// believes implements connection.
func (l *link) believes(proof string) bool {
	return l.guard.Hears(proof)
}

// MasterTime implements node.Clocked.
func (l *link) MasterTime() (time.Time, bool) {
	return l.began.Add(l.host.clock.Monotonic()), !l.began.IsZero()
}

// Returned implements node.Returning.
func (l *link) Returned(f func()) { l.returned = l.client.noteReturn(f) }

// Forgot implements node.Forgetful.
func (l *link) Forgot(f func()) { l.forgot = f }

// tellForgotten tells the coordinator that the master has forgotten what it knew.
func (l *link) tellForgotten() {
	if l.forgot != nil {
		l.forgot()
	}
}

// owe notes that a call failed: the master may be owed a release.
func (l *link) owe(c *call, err error) {
	l.pending.Failed(node.PendingRelease{Cmd: c.cmd, Until: c.until}, err)
}

// pay sends the releases that are owed, in order.
func (l *link) pay() {
	l.pending.Deliver(l.host.clock.Monotonic(), func(what node.PendingRelease) error {
		if l.conn == nil {
			return node.ErrDown
		}
		l.client.stats.redelivered++
		if what.Until <= l.host.clock.Monotonic() {
			l.client.blame(l.master.host.name + " is sent a release that is worth nothing any more")
		}
		cmd, _ := l.guard.Allow(what.Cmd)
		l.put(call{cmd: cmd, until: what.Until, done: func(wire.Reply) {}})
		return nil
	})
	l.tellPaid() // some may have expired
}

// watch gives up the connection when its oldest call stays unanswered.
func (l *link) watch() {
	if l.watched || len(l.conn.flight) == 0 {
		return
	}
	l.watched = true
	age := l.host.clock.Monotonic() - l.conn.flight[0].sent
	l.host.clock.after(silence-age, func() {
		l.watched = false
		if l.conn == nil || len(l.conn.flight) == 0 {
			return
		}
		if l.host.clock.Monotonic()-l.conn.flight[0].sent >= silence {
			l.broken(l.conn, node.ErrUnknown)
			return
		}
		l.watch()
	})
}

// broken ends a connection: whatever was under way has an unknown outcome.
func (l *link) broken(c *conn, why error) {
	if !c.open {
		return
	}
	stood := time.Duration(0)
	if l.greeted {
		stood = l.host.clock.Monotonic() - l.up
	}
	c.open = false
	l.conn, l.greeted = nil, false
	if !l.closed {
		l.world.rough = max(l.world.rough, l.world.now)
		l.client.stats.broken++
	}
	for _, ear := range c.ears {
		ear.leave()
	}
	flight := c.flight
	c.flight = nil
	l.retry(stood)
	for _, cl := range flight {
		if cl == nil {
			continue
		}
		var op wire.Op
		if cl.cmd != nil {
			op = cl.cmd.Op
			l.owe(cl, why)
			l.client.stats.unknown++
		}
		l.client.hand(l.master.index, cl.asked(), cl.done, l.failure(op, why))
	}
}

// retry dials again after a pause.
func (l *link) retry(stood time.Duration) {
	l.host.clock.after(l.redial.Ended(stood, l.host.clock.Monotonic(), l.wire.dice.bits()), l.dial)
}

// dial opens a connection and greets the master. A stopped server still
// accepts; its kernel does that.
func (l *link) dial() {
	if l.closed {
		return
	}
	c := &conn{link: l, end: l, wire: l.wire, host: l.host, open: true, life: l.master.host.life}
	l.conn, l.greeted, l.looking = c, false, false
	l.wire.accept(c)
	if l.master.host.down {
		c.hangUp()
	} else {
		l.master.conns = append(l.master.conns, c)
	}
	asked := l.guard.Now()
	l.put(call{
		ask: func(m *master) (any, *wire.ServerError) { return m.greet(l.client.index, l.look) },
		done: func(r wire.Reply) {
			if r.Err != nil {
				l.broken(c, r.Err.Err)
				return
			}
			l.greet(asked, r.Value.(serverInfo))
		},
	})
}

// greet lets the guard judge a new connection. Commands are accepted only once the
// master has the marker that the guard wants.
func (l *link) greet(asked drift.Instant, g serverInfo) {
	l.runID = g.runID
	greeted := l.conn
	e := l.evidence(asked, g)
	v := l.judge(e)
	l.loss = l.loss || v.Lost
	switch {
	case l.conn == nil || l.conn != greeted || l.closed:
		return // it broke while the client's code was stopped in the middle
	case e.Replica:
		l.broken(l.conn, node.ErrNotMaster)
		return
	case v.Stranger != nil:
		l.broken(l.conn, v.Stranger)
		return
	case !v.Writes():
		l.admitted()
		return
	}
	c := l.conn
	asked = l.guard.Now()
	l.put(call{cmd: l.mark(v), done: func(r wire.Reply) {
		if r.Err != nil {
			l.broken(c, r.Err.Err)
			return
		}
		g.fields = r.Value
		l.greet(asked, g)
	}})
}

// admitted opens the connection to commands. Releases that are owed go first.
func (l *link) admitted() {
	c := l.conn
	again := l.up > 0
	l.greeted, l.up, l.since = true, l.host.clock.Monotonic(), l.world.now
	l.listen()
	l.host.clock.after(firstLook, func() { l.early(c, 2*firstLook) })
	l.pay()
	if l.conn != c {
		return // it broke meanwhile
	}
	for _, s := range l.subs {
		l.introduce(s)
	}
	if l.loss {
		l.loss = false
		l.tellForgotten()
	}
	if again && l.returned != nil {
		l.returned()
	}
}

// beat looks at the marker and the clock once a second, and tries again to
// deliver what the master refused.
func (l *link) beat() {
	if l.closed {
		return
	}
	l.host.clock.after(heartbeat, l.beat)
	if !l.greeted {
		return
	}
	l.pay()
	l.lookAgain()
}

// firstLook is how soon after a handshake a master is looked at again; then the pauses
// double.
const firstLook = heartbeat / 20

// early looks at the marker and the clock before the first heartbeat.
func (l *link) early(c *conn, pause time.Duration) {
	if l.closed || l.conn != c {
		return
	}
	l.lookAgain()
	if pause < heartbeat/2 {
		l.host.clock.after(pause, func() { l.early(c, 2*pause) })
	}
}

// lookAgain looks at the marker and the clock, unless a look is under way.
func (l *link) lookAgain() {
	if l.looking || !l.greeted {
		return
	}
	l.looking = true
	cn := l.conn
	asked := l.guard.Now()
	l.put(call{cmd: l.look, done: func(r wire.Reply) {
		v, ok := l.heard(asked, r)
		if !ok || !v.Writes() || l.conn != cn { // a listener may have been stopped in the middle until now
			l.looking = false
			return
		}
		asked := l.guard.Now()
		l.put(call{cmd: l.mark(v), done: func(r wire.Reply) {
			l.heard(asked, r)
			l.looking = false
		}})
	}})
}

// heard judges the answer to a look. A refusal is no evidence; the next
// heartbeat asks again.
func (l *link) heard(asked drift.Instant, r wire.Reply) (v node.Verdict, ok bool) {
	if r.Err != nil {
		return v, false
	}
	e := l.evidence(asked, serverInfo{l.runID, -1, r.Value})
	v = l.judge(e)
	if e.Replica {
		l.broken(l.conn, node.ErrNotMaster)
		return v, false
	}
	if v.Stranger != nil {
		l.broken(l.conn, v.Stranger)
		return v, false
	}
	if v.Lost || v.Slow {
		l.tellForgotten()
	}
	return v, true
}

// mark returns the command that replaces the marker as the verdict says.
func (l *link) mark(v node.Verdict) *wire.Command {
	return wire.Mark("", v.Args()...)
}

// evidence makes what the server said evidence for the guard.
func (l *link) evidence(asked drift.Instant, g serverInfo) node.Evidence {
	e := node.Evidence{RunID: g.runID, Uptime: g.uptime, Sent: asked, Took: l.host.clock.Monotonic() - asked.Monotonic()}
	seen, _ := wire.SeenOf(wire.Reply{Value: g.fields})
	if seen.Marker != l.stored {
		l.stored = seen.Marker
		l.marker, _ = node.ParseMarker(l.stored)
	}
	e.Marker, e.Offsets, e.Time = l.marker, seen.Offsets, seen.Time
	e.Replica, e.Promotion = seen.Replica, seen.Promotion
	l.began = e.Time.Add(-e.Sent.Monotonic() - e.Took/2)
	return e
}

// Subscribe implements node.Node.
func (l *link) Subscribe(channel string, listener node.Listener) (cancel func()) {
	s := &subscription{channel: channel, listener: listener}
	l.subs = append(l.subs, s)
	if l.greeted {
		l.introduce(s)
	}
	return func() {
		s.ended = true
		if s.conn != nil && s.conn.open {
			for _, e := range s.conn.ears {
				if e.subscription == s {
					e.leave()
				}
			}
		}
		for i, o := range l.subs {
			if o == s {
				l.subs = append(l.subs[:i], l.subs[i+1:]...)
				return
			}
		}
	}
}

// Owed implements node.Owing.
func (l *link) Owed() []*wire.Command {
	cmds := l.pending.Commands()
	if l.conn != nil {
		for _, c := range l.conn.flight {
			if c.cmd != nil && c.cmd.Op == wire.OpRelease && c.cmd.Keep > 0 {
				cmds = append(cmds, c.cmd)
			}
		}
	}
	return cmds
}

// Paid implements node.Owing.
func (l *link) Paid(f func()) { l.paid = f }

// tellPaid is called whenever something may be owed no more.
func (l *link) tellPaid() {
	if l.paid != nil && len(l.Owed()) == 0 {
		l.paid()
	}
}

// Unnoticed implements node.Watching.
func (l *link) Unnoticed() time.Duration { return drift.Unnoticed }

// Pace implements node.Watching.
func (l *link) Pace() float64 { return l.client.group.Pace() }

// Subscribed implements node.Subscribed.
func (l *link) Subscribed(channel string) bool {
	return slices.ContainsFunc(l.subs, func(s *subscription) bool {
		return s.channel == channel && s.heard != nil && s.heard == l.conn && l.conn.open
	})
}

// introduce sends a subscription to the master. Its listener may have missed
// messages from before it is confirmed.
func (l *link) introduce(s *subscription) {
	s.conn = l.conn
	if l.master.deaf {
		return // it may not subscribe
	}
	ear := &subscriber{subscription: s, conn: l.conn}
	l.conn.ears = append(l.conn.ears, ear)
	l.wire.send(&l.conn.hello, l.master.host, action(func() {
		l.master.subs = append(l.master.subs, ear)
		l.wire.send(&ear.conn.news, l.host, action(ear.confirmed), inward)
	}), outward)
}

// Close implements node.Node. The connection stays open for a moment, for the
// answers to what is under way. A node.Master waits for them in Close.
func (l *link) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	if l.greeted {
		l.pay()
	}
	l.greeted = false
	if c := l.conn; c != nil {
		l.host.clock.after(closeGrace, func() { l.broken(c, node.ErrUnknown) })
	}
	return nil
}

// crash implements connection.
func (l *link) crash() {
	if l.conn == nil {
		return
	}
	l.conn.open = false
	for _, ear := range l.conn.ears {
		ear.leave()
	}
}
