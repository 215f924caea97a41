package fleet

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Link is a client's end of its connection to one master, by the fast transport: a
// node.Node that follows the rules of package node's own transport. A test holds
// the two equal.
type Link struct {
	world  *world.World
	Client *Client
	host   *world.Host // the client's
	Master *Master
	Wire   *Cable
	guard  *guard.Guard
	group  *guard.Group
	look   *wire.Command // reads the marker

	conn    *conn // nil: not connected
	Greeted bool  // the handshake is through: commands are accepted
	closed  bool
	looking bool // a heartbeat is under way
	runID   string
	stored  string       // the marker that was last read
	marker  guard.Marker // stored, parsed
	redial  node.Redial
	began   time.Time     // what the master's clock said when our monotonic clock was at zero; zero: not known
	up      time.Duration // when the last handshake came through, by the monotonic clock
	Since   time.Duration // and in true time
	Vague   time.Duration // when a look last took so long that it left open where the master's clock is (S48)
	Kept    bool          // it keeps the master from voting without a reason, which was reported
	watched bool          // a timer watches the oldest call
	silent  bool          // the oldest call has waited too long: acquires are not sent meanwhile
	pending *node.PendingReleases
	subs    []*subscription
	loss    bool           // the handshake found that it has
	renew   func(all bool) // see node.Renewing; may be nil
	idle    func() bool    // see node.Resting; may be nil
	Rested  time.Duration  // when a heartbeat last passed without a look
	paid    func()         // called when no release is owed to the master; may be nil
}

// The timing and the limits of the real transport.
const (
	silence   = time.Second           // after which a connection with unanswered calls is given up
	hanging   = 75 * time.Millisecond // after which it is sent no acquires
	Heartbeat = time.Second
	MinPause  = 20 * time.Millisecond // before the first reconnect
	MaxPause  = 500 * time.Millisecond
	maxOwed   = 65536

	quick = 20 * time.Millisecond // a look that takes longer leaves open where a clock is
)

func newLink(c *Client, m *Master, w *Cable, group *guard.Group) *Link {
	l := &Link{
		world:   c.World,
		Client:  c,
		host:    c.Host,
		Master:  m,
		Wire:    w,
		pending: node.NewPendingReleases(maxOwed),
		redial:  node.Redial{Min: MinPause, Max: MaxPause},
		guard:   guard.New(c.Guard, c.Host.Clock, group),
		group:   group,
		look:    wire.Look(""),
	}
	l.dial()
	l.host.Clock.Later(l.Wire.dice.Between(0, Heartbeat), l.beat)
	return l
}

// Addr implements node.Node.
func (l *Link) Addr() string { return l.Master.Host.Name }

// Do implements node.Node.
func (l *Link) Do(cmd *wire.Command, done func(wire.Reply)) { l.Client.weak.Do(cmd, done, l.do) }

func (l *Link) do(cmd *wire.Command, done func(wire.Reply)) {
	if l.host.Down {
		return // code that a crash unwinds reaches no master
	}
	if l.Client.steps.Free() {
		l.Client.step()
	}
	l.Client.Watch.Gives(l.Master.Index, cmd)
	if !l.Greeted {
		l.pending.NotSent(node.PendingRelease{Cmd: cmd}, node.ErrDown)
		l.Client.Watch.Hand(l.Master.Index, cmd, done, l.failure(cmd.Op, node.ErrDown))
		return
	}
	cmd, err := l.guard.Allow(cmd)
	if err != nil {
		l.Client.Stats.Quarantined++
		l.Client.Watch.KeptOut(l)
		l.Client.Watch.Hand(l.Master.Index, cmd, done, l.failure(cmd.Op, err))
		return
	}
	if l.hangs() && l.pending.Spare(cmd) {
		l.Client.Watch.Hand(l.Master.Index, cmd, done, l.failure(cmd.Op, node.ErrSilent))
		return
	}
	if cmd.Op.Votes() {
		l.placeClock()
	}
	l.put(call{cmd: cmd, done: done})
}

// hangs reports whether the master has left a call unanswered for too long.
func (l *Link) hangs() bool {
	if !l.silent && len(l.conn.flight) > 0 {
		l.silent = l.host.Clock.Monotonic()-l.conn.flight[0].sent > hanging
	}
	return l.silent
}

// listen lets acquires and repairs through again.
func (l *Link) listen() {
	l.silent = false
	l.pending.Heard()
}

// missed makes every subscriber ask again: the master grants again, and may have
// published what the subscriber did not hear.
func (l *Link) missed() {
	for _, s := range slices.Clone(l.subs) {
		s.listener.Missed()
	}
}

// judge gives the guard new evidence. If the master may vote again, judge calls the Missed of the
// subscribers.
func (l *Link) judge(e guard.Evidence) guard.Verdict {
	v := l.Client.weak.Lacks.Look(l.guard, e, l.up == 0)
	if v.Admitted {
		l.missed()
	}
	return v
}

// Votes implements node.Voting.
func (l *Link) Votes() error {
	why := l.guard.Admit(wire.OpAcquire)
	switch {
	case !l.Greeted:
		why = node.ErrDown
	case l.silent:
		why = node.ErrSilent
	}
	if why == nil {
		return nil
	}
	return l.failure(wire.OpAcquire, why).Err
}

func (l *Link) failure(op wire.Op, err error) wire.Reply {
	return wire.Reply{Err: &wire.Error{Node: l.Addr(), Op: op, Err: err}}
}

// put sends a call on the open connection.
func (l *Link) put(what call) {
	c := l.Client.call()
	*c = what
	c.conn = l.conn
	c.sent = l.host.Clock.Monotonic()
	l.conn.flight = append(l.conn.flight, c)
	l.watch()
	l.Wire.send(&l.conn.out, l.Master.Host, c, Outward)
}

// answered hands a reply to its caller.
func (l *Link) answered(c *call) {
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
	if r.Err == nil && c.cmd != nil {
		l.pending.Ran(c.cmd)
	}
	if r.Err == nil && c.cmd != nil && c.cmd.Op.Votes() {
		r = l.weigh(c, r)
	}
	cmd, done := c.asked(), c.done
	pays := c.cmd != nil && c.cmd.Op == wire.OpRelease
	*c = call{}
	l.Client.calls = append(l.Client.calls, c)
	l.Client.Watch.Hand(l.Master.Index, cmd, done, r)
	if pays {
		l.tellPaid()
	}
	if heard {
		l.missed() // what waiters asked while it was silent was not sent
	}
}

// weigh lets the guard judge a vote by the marker and the time that came with it.
func (l *Link) weigh(c *call, r wire.Reply) wire.Reply {
	known := l.guard.Accepted()
	v := l.Client.weak.Lacks.Vote(weaker.Vote{Marker: c.marker, At: c.at, Replica: c.replica, Promotion: c.origin}, known)
	timely, remained := l.guard.TimelyVote(v.At, c.sent), l.guard.Remained(v.Replica, v.Promotion)
	vouched := timely && remained && l.guard.Vouched(v.Marker)
	if known != "" && (!timely || !remained || c.marker != known) {
		l.lookAgain()
	}
	young, err := l.guard.Weigh(c.cmd.Op, vouched)
	if err != nil {
		return l.failure(c.cmd.Op, err)
	}
	r.Young = young
	return r
}

// Believes implements connection.
func (l *Link) Believes(proof string) bool {
	return l.guard.Hears(proof)
}

// MasterTime implements node.Clocked.
func (l *Link) MasterTime() (time.Time, bool) {
	return l.began.Add(l.host.Clock.Monotonic()), !l.began.IsZero() && !l.Client.weak.Lacks.Tickets
}

// Renew implements node.Renewing.
func (l *Link) Renew(f func(all bool)) { l.renew = f }

// Idle implements node.Resting.
func (l *Link) Idle(idle func() bool) { l.idle = idle }

// Look implements node.Resting.
func (l *Link) Look() { l.lookAgain() }

// rests reports whether a heartbeat passes without a look.
func (l *Link) rests() bool {
	if l.idle == nil || !l.idle() || l.guard.Admit(wire.OpAcquire) != nil {
		return false
	}
	l.Rested = l.world.Now
	return true
}

// tellRenew has the coordinator renew all leases, or only the overdue leases.
func (l *Link) tellRenew(all bool) {
	if l.renew != nil {
		l.renew(all)
	}
}

// owe notes that a call failed: the master may be owed a release.
func (l *Link) owe(c *call, err error) {
	l.pending.Failed(node.PendingRelease{Cmd: c.cmd, Until: c.until}, err)
}

// pay sends the releases that are owed, in order.
func (l *Link) pay() {
	l.pending.Deliver(l.host.Clock.Monotonic(), func(what node.PendingRelease) error {
		if l.conn == nil {
			return node.ErrDown
		}
		l.Client.Stats.Redelivered++
		if what.Until <= l.host.Clock.Monotonic() {
			l.Client.Watch.Blame(l.Master.Host.Name + " is sent a release that is worth nothing any more")
		}
		cmd, _ := l.guard.Allow(what.Cmd)
		l.put(call{cmd: cmd, until: what.Until, done: func(wire.Reply) {}})
		return nil
	})
	l.tellPaid() // some may have expired
}

// Watch gives up the connection when its oldest call stays unanswered.
func (l *Link) watch() {
	if l.watched || len(l.conn.flight) == 0 {
		return
	}
	l.watched = true
	age := l.host.Clock.Monotonic() - l.conn.flight[0].sent
	l.host.Clock.Later(silence-age, func() {
		l.watched = false
		if l.conn == nil || len(l.conn.flight) == 0 {
			return
		}
		if l.host.Clock.Monotonic()-l.conn.flight[0].sent >= silence {
			l.broken(l.conn, node.ErrUnknown)
			return
		}
		l.watch()
	})
}

// broken ends a connection: whatever was under way has an unknown outcome.
func (l *Link) broken(c *conn, why error) {
	if c == nil || !c.open { // a listener may have been stopped in the middle until now
		return
	}
	stood := time.Duration(0)
	if l.Greeted {
		stood = l.host.Clock.Monotonic() - l.up
	}
	c.open = false
	l.conn, l.Greeted = nil, false
	if !l.closed {
		l.world.Rough = max(l.world.Rough, l.world.Now)
		l.Client.Stats.Broken++
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
			l.Client.Stats.Unknown++
		}
		l.Client.Watch.Hand(l.Master.Index, cl.asked(), cl.done, l.failure(op, why))
	}
}

// retry dials again after a pause.
func (l *Link) retry(stood time.Duration) {
	l.host.Clock.Later(l.redial.Ended(stood, l.host.Clock.Monotonic(), l.Wire.dice.Bits()), l.dial)
}

// dial opens a connection and greets the master. A stopped server still
// accepts; its kernel does that.
func (l *Link) dial() {
	if l.closed {
		return
	}
	c := &conn{link: l, end: l, wire: l.Wire, host: l.host, open: true, life: l.Master.Host.Life}
	l.conn, l.Greeted, l.looking = c, false, false
	l.Wire.accept(c)
	if l.Master.Host.Down {
		c.hangUp()
	} else {
		l.Master.conns = append(l.Master.conns, c)
	}
	asked := l.guard.Now()
	l.put(call{
		ask: func(m *Master) (any, *wire.ServerError) { return m.greet(l.Client.Index, l.look) },
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
// Master has the marker that the guard wants.
func (l *Link) greet(asked drift.Instant, g serverInfo) {
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
func (l *Link) admitted() {
	c := l.conn
	l.Greeted, l.up, l.Since = true, l.host.Clock.Monotonic(), l.world.Now
	l.listen()
	l.host.Clock.Later(firstLook, func() { l.early(c, 2*firstLook) })
	l.pay()
	if l.conn != c {
		return // it broke meanwhile
	}
	for _, s := range l.subs {
		l.introduce(s)
	}
	forgot := l.loss
	l.loss = false
	l.tellRenew(forgot)
}

// beat looks at the marker and the clock once a second, and tries again to
// deliver what the master refused.
func (l *Link) beat() {
	if l.closed {
		return
	}
	l.host.Clock.Later(Heartbeat, l.beat)
	if !l.Greeted {
		return
	}
	l.pay()
	if !l.rests() {
		l.lookAgain()
	}
}

// firstLook is how soon after a handshake a master is looked at again; then the pauses
// double.
const firstLook = Heartbeat / 20

// early looks at the marker and the clock before the first heartbeat.
func (l *Link) early(c *conn, pause time.Duration) {
	if l.closed || l.conn != c {
		return
	}
	l.lookAgain()
	if pause < Heartbeat/2 {
		l.host.Clock.Later(pause, func() { l.early(c, 2*pause) })
	}
}

// lookAgain looks at the marker and the clock, unless a look is under way.
func (l *Link) lookAgain() {
	if l.looking || !l.Greeted {
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

// placeClock writes where the master's clock is, if that must be written before a vote.
func (l *Link) placeClock() {
	cn, v := l.conn, l.guard.BeforeVote()
	if cn.placing || !v.Writes() {
		return
	}
	cn.placing = true
	asked := l.guard.Now()
	l.put(call{cmd: l.mark(v), done: func(r wire.Reply) {
		cn.placing = false
		l.heard(asked, r)
	}})
}

// heard judges the answer to a look. An error reply carries no evidence; the next heartbeat
// asks again.
func (l *Link) heard(asked drift.Instant, r wire.Reply) (v guard.Verdict, ok bool) {
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
		l.tellRenew(true)
	}
	return v, true
}

// mark returns the command that replaces the marker as the verdict says.
func (l *Link) mark(v guard.Verdict) *wire.Command {
	return wire.Mark("", v.Args()...)
}

// evidence makes what the server said evidence for the guard.
func (l *Link) evidence(asked drift.Instant, g serverInfo) guard.Evidence {
	e := guard.Evidence{RunID: g.runID, Uptime: g.uptime, Sent: asked, Took: l.host.Clock.Monotonic() - asked.Monotonic()}
	seen, _ := wire.SeenOf(wire.Reply{Value: g.fields})
	if seen.Marker != l.stored {
		l.stored = seen.Marker
		l.marker, _ = guard.ParseMarker(l.stored)
	}
	e.Marker, e.Offsets, e.Time = l.marker, seen.Offsets, seen.Time
	e.Replica, e.Promotion = seen.Replica, seen.Promotion
	l.began = e.Time.Add(-e.Sent.Monotonic() - e.Took/2)
	if e.Took > quick {
		l.Vague = l.world.Now
	}
	return e
}

// Subscribe implements node.Node.
func (l *Link) Subscribe(channel string, listener node.Listener) (cancel func()) {
	s := &subscription{channel: channel, listener: listener}
	l.subs = append(l.subs, s)
	if l.Greeted {
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
func (l *Link) Owed() []*wire.Command {
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
func (l *Link) Paid(f func()) { l.paid = f }

// tellPaid is called whenever something may be owed no more.
func (l *Link) tellPaid() {
	if l.paid != nil && len(l.Owed()) == 0 {
		l.paid()
	}
}

// Unnoticed implements node.Watching.
func (l *Link) Unnoticed() time.Duration { return drift.Unnoticed }

// Pace implements node.Watching.
func (l *Link) Pace() float64 { return l.Client.weak.Lacks.Pace(l.group.Pace()) }

// Subscribed implements node.Subscribed.
func (l *Link) Subscribed(channel string) bool {
	return slices.ContainsFunc(l.subs, func(s *subscription) bool {
		return s.channel == channel && s.heard != nil && s.heard == l.conn && l.conn.open
	})
}

// introduce sends a subscription to the master. Its listener may have missed
// messages from before it is confirmed.
func (l *Link) introduce(s *subscription) {
	s.conn = l.conn
	if l.Master.Deaf {
		return // it may not subscribe
	}
	ear := &subscriber{subscription: s, conn: l.conn}
	l.conn.ears = append(l.conn.ears, ear)
	l.Wire.send(&l.conn.hello, l.Master.Host, world.Action(func() {
		l.Master.subs = append(l.Master.subs, ear)
		l.Wire.send(&ear.conn.news, l.host, world.Action(ear.confirmed), Inward)
	}), Outward)
}

// Close implements node.Node. The connection stays open for CloseGrace, for the answers to
// calls under way. A node.Master waits for these answers in Close.
func (l *Link) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	if l.Greeted {
		l.pay()
	}
	l.Greeted = false
	if c := l.conn; c != nil {
		l.host.Clock.Later(CloseGrace, func() { l.broken(c, node.ErrUnknown) })
	}
	return nil
}

// crash implements Connection.
func (l *Link) crash() {
	if l.conn == nil {
		return
	}
	l.conn.open = false
	for _, ear := range l.conn.ears {
		ear.leave()
	}
}

// Disturbed reports whether a look would be refused, or come late.
func (l *Link) Disturbed() bool {
	w := l.Wire
	return l.Master.Refuses != nil || w.Slow > 0 || w.Cut[Outward]+w.Cut[Inward] > 0
}

// Settled reports whether the master has got everything that was sent, on
// whatever connection, and is owed nothing.
func (l *Link) Settled() bool {
	return l.Wire.Busy <= l.world.Now && !l.Wire.holds() && l.Quiet()
}

// Quiet reports whether the master is connected, nothing is under way, and
// nothing is owed.
func (l *Link) Quiet() bool {
	return l.Greeted && len(l.conn.flight) == 0 && l.pending.Len() == 0
}

// Owing returns how many releases the master was not told of.
func (l *Link) Owing() int { return l.pending.Len() }

// Well implements connection. A silent crash of the master leaves its connections as
// they are. They belong to its former life, and the client learns that from its next
// heartbeat.
func (l *Link) Well() bool {
	h, w := l.Master.Host, l.Wire
	return l.Greeted && l.conn.life == h.Life && !h.Down && !h.Stopped() && l.Master.Refuses == nil &&
		w.Cut[Outward] == 0 && w.Cut[Inward] == 0 && w.Slow == 0 &&
		l.conn.out.last <= l.world.Now+2*w.latency.Base && l.conn.in.last <= l.world.Now+2*w.latency.Base &&
		!l.Held()
}

func (l *Link) Held() bool { return l.guard.Admit(wire.OpAcquire) != nil }

// CloseGrace is how long a connection stays open after the Close of its Link, for the answers
// to calls under way.
const CloseGrace = 100 * time.Millisecond
