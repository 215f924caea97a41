package simulate

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// link is a client's end of its connection to one master. It is the node.Node
// of the simulated world: it promises what the real transport promises, on a
// network that keeps nothing back.
type link struct {
	world  *world
	client *client
	host   *host // the client's
	master *master
	wire   *wire
	guard  *node.Guard
	look   *node.Command // reads the marker

	conn    *conn // nil: not connected
	greeted bool  // the handshake is through: commands are accepted
	looking bool  // a heartbeat is under way
	runID   string
	tries   int
	watched bool // an alarm looks after the oldest call
	silent  bool // the oldest call has waited for long: no acquires meanwhile
	debts   *node.Debts
	subs    []*subscription
}

// The timing and the limits of the real transport.
const (
	silence   = time.Second           // after which a connection with unanswered calls is given up
	hanging   = 75 * time.Millisecond // after which it is sent no acquires
	heartbeat = time.Second
	minPause  = 20 * time.Millisecond // before the first reconnect
	maxPause  = 500 * time.Millisecond
	maxOwed   = 8192
)

func newLink(c *client, m *master, w *wire) *link {
	l := &link{
		world:  c.world,
		client: c,
		host:   c.host,
		master: m,
		wire:   w,
		debts:  node.NewDebts(maxOwed),
		guard:  node.NewGuard(c.guard, c.host.clock),
		look: &node.Command{Op: node.OpRead, Script: node.ScriptMarker,
			Keys: []string{node.MarkerKey("")}, Args: []string{"", ""}},
	}
	l.dial()
	l.host.clock.after(l.wire.dice.between(0, heartbeat), l.beat)
	return l
}

// Addr implements node.Node.
func (l *link) Addr() string { return l.master.host.name }

// Do implements node.Node.
func (l *link) Do(cmd *node.Command, done func(node.Reply)) {
	if !l.greeted {
		l.debts.NotSent(node.Debt{Cmd: cmd}, node.ErrDown)
		done(l.failure(cmd.Op, node.ErrDown))
		return
	}
	if err := l.guard.Admit(cmd.Op); err != nil {
		l.client.stats.quarantined++
		done(l.failure(cmd.Op, err))
		return
	}
	if l.hangs() && l.debts.Spare(cmd) {
		done(l.failure(cmd.Op, node.ErrSilent))
		return
	}
	l.put(call{cmd: cmd, done: done})
}

// hangs reports whether the master has not answered for a while.
func (l *link) hangs() bool {
	if !l.silent && len(l.conn.flight) > 0 {
		l.silent = l.host.clock.Monotonic()-l.conn.flight[0].sent > hanging
	}
	return l.silent
}

// listen takes acquires and repairs again.
func (l *link) listen() {
	l.silent = false
	l.debts.Heard()
}

func (l *link) failure(op node.Op, err error) node.Reply {
	return node.Reply{Err: &node.Error{Node: l.Addr(), Op: op, Err: err}}
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

// answered hands a reply to the one who asked.
func (l *link) answered(c *call) {
	cn := c.conn
	if !cn.open {
		return
	}
	if len(cn.flight) == 0 || cn.flight[0] != c {
		panic("simulate: a reply out of order")
	}
	if l.silent {
		l.listen()
	}
	last := len(cn.flight) - 1
	copy(cn.flight, cn.flight[1:]) // short; a slice that moves on would be made anew all the time
	cn.flight[last] = nil
	cn.flight = cn.flight[:last]
	r := node.Reply{Value: c.value}
	if c.err != nil {
		var op node.Op
		if c.cmd != nil {
			op = c.cmd.Op
			l.owe(c, c.err)
		}
		r = l.failure(op, c.err)
	}
	done := c.done
	*c = call{}
	l.world.calls = append(l.world.calls, c)
	done(r)
}

// owe notes how a call failed.
func (l *link) owe(c *call, err error) {
	l.debts.Failed(node.Debt{Cmd: c.cmd, Until: c.until}, err)
	l.wire.troubled = l.wire.troubled || l.debts.Len() > 0
}

// pay delivers what is owed, in order.
func (l *link) pay() {
	l.debts.Deliver(l.host.clock.Monotonic(), func(what node.Debt) error {
		l.client.stats.redelivered++
		l.put(call{cmd: what.Cmd, until: what.Until, done: func(node.Reply) {}})
		return nil
	})
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
	c.open = false
	l.conn, l.greeted = nil, false
	l.wire.troubled = true
	l.client.stats.broken++
	for _, ear := range c.ears {
		ear.leave()
	}
	flight := c.flight
	c.flight = nil
	l.retry()
	for _, cl := range flight {
		if cl == nil {
			continue
		}
		var op node.Op
		if cl.cmd != nil {
			op = cl.cmd.Op
			l.owe(cl, why)
			l.client.stats.unknown++
		}
		cl.done(l.failure(op, why))
	}
}

// retry dials again after a pause that doubles.
func (l *link) retry() {
	pause := min(maxPause, minPause<<min(l.tries, 10))
	l.tries++
	l.host.clock.after(l.wire.dice.between(pause/2, pause), l.dial)
}

// dial opens a connection and greets the master. A stopped server still
// accepts; its kernel does that.
func (l *link) dial() {
	c := &conn{link: l, open: true, life: l.master.host.life}
	l.conn, l.greeted, l.looking = c, false, false
	l.wire.accept(c)
	if l.master.host.down {
		c.hangUp()
	} else {
		l.master.conns = append(l.master.conns, c)
	}
	asked := l.host.clock.Monotonic()
	l.put(call{
		ask: func(m *master) (any, *node.ServerError) { return m.greet(l.client.index, l.look) },
		done: func(r node.Reply) {
			if r.Err != nil {
				l.broken(c, r.Err.Err)
				return
			}
			l.greet(asked, r.Value.(greeting))
		},
	})
}

// greet has the guard look at a new connection. Commands are accepted only when
// the guard's marker is where it belongs.
func (l *link) greet(asked time.Duration, g greeting) {
	l.runID = g.runID
	v := l.guard.Look(l.evidence(asked, g))
	if v.Write.RunID == "" {
		l.admitted()
		return
	}
	c := l.conn
	asked = l.host.clock.Monotonic()
	l.put(call{cmd: l.mark(v), done: func(r node.Reply) {
		if r.Err != nil {
			l.broken(c, r.Err.Err)
			return
		}
		g.fields = r.Value
		l.guard.Look(l.evidence(asked, g))
		l.admitted()
	}})
}

// admitted lets commands through, the releases that are owed first.
func (l *link) admitted() {
	l.greeted, l.tries = true, 0
	l.listen()
	l.pay()
	for _, s := range l.subs {
		l.introduce(s)
	}
}

// beat looks at the marker and the clock once a second, and tries again to
// deliver what the master refused.
func (l *link) beat() {
	l.host.clock.after(heartbeat, l.beat)
	if !l.greeted {
		return
	}
	l.pay()
	if l.looking {
		return
	}
	l.looking = true
	asked := l.host.clock.Monotonic()
	l.put(call{cmd: l.look, done: func(r node.Reply) {
		l.looking = false
		if r.Err != nil {
			return // no evidence; the next heartbeat asks again
		}
		v := l.guard.Look(l.evidence(asked, greeting{l.runID, -1, r.Value}))
		if v.Write.RunID == "" {
			return
		}
		asked := l.host.clock.Monotonic()
		l.put(call{cmd: l.mark(v), done: func(r node.Reply) {
			if r.Err == nil {
				l.guard.Look(l.evidence(asked, greeting{l.runID, -1, r.Value}))
			}
		}})
	}})
}

// mark is the command that replaces a marker.
func (l *link) mark(v node.Verdict) *node.Command {
	return &node.Command{Op: node.OpRead, Script: node.ScriptMarker, Keys: l.look.Keys,
		Args: []string{v.Over.String(), v.Write.String()}}
}

// evidence reads a greeting for the guard.
func (l *link) evidence(asked time.Duration, g greeting) node.Evidence {
	e := node.Evidence{RunID: g.runID, Uptime: g.uptime, Took: l.host.clock.Monotonic() - asked}
	fields := g.fields.([]any)
	e.Marker, _ = node.ParseMarker(string(fields[0].([]byte)))
	s, _ := strconv.ParseInt(string(fields[1].([]byte)), 10, 64)
	us, _ := strconv.ParseInt(string(fields[2].([]byte)), 10, 64)
	e.Time = time.Unix(s, us*1000).UTC()
	return e
}

// Subscribe implements node.Node.
func (l *link) Subscribe(channel string, wake func()) (cancel func()) {
	s := &subscription{channel: channel, wake: wake}
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

// introduce asks the master for a subscription; the confirmation is a wake-up,
// because messages may have been missed before it.
func (l *link) introduce(s *subscription) {
	s.conn = l.conn
	ear := &subscriber{subscription: s, conn: l.conn}
	l.conn.ears = append(l.conn.ears, ear)
	l.wire.send(&l.conn.hello, l.master.host, action(func() {
		l.master.subs = append(l.master.subs, ear)
		l.wire.send(&ear.conn.news, l.host, action(ear.deliver), inward)
	}), outward)
}

// Close implements node.Node.
func (l *link) Close() error {
	if l.conn != nil && l.conn.open {
		l.conn.open = false
		flight := l.conn.flight
		l.conn.flight = nil
		l.greeted = false
		for _, c := range flight {
			if c.cmd != nil {
				c.done(l.failure(c.cmd.Op, node.ErrClosed))
			}
		}
	}
	return nil
}
