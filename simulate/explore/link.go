package explore

import (
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// ear is a client's subscription at a master.
type ear struct {
	client   *explorer
	channel  string
	listener node.Listener
	ended    bool
}

// tether is a client's link to a master: a node.Node on which every message arrives
// when the search says so. What one connection carries stays in order.
type tether struct {
	client   *explorer
	master   *cell
	number   int16         // of the client's connection, from 0
	accepted int16         // the latest connection that the master has accepted
	memories map[int16]int // cell.memory when it accepted each connection
	flight   []*errand
	owed     *node.PendingReleases
	ears     []*ear
}

// errand is a command under way.
type errand struct {
	cmd   *wire.Command
	done  func(wire.Reply)
	until time.Duration // of a release that is sent again
	round int16
	over  bool
}

func newTether(c *explorer, m *cell) *tether {
	return &tether{client: c, master: m, memories: map[int16]int{0: 0}, owed: node.NewPendingReleases(100)}
}

func (p *tether) strand(kind strandKind, number int16) strandName {
	return strandName{kind, p.client.index, p.master.index, number}
}

// Addr implements node.Node.
func (p *tether) Addr() string { return p.master.name() }

// Do implements node.Node.
func (p *tether) Do(cmd *wire.Command, done func(wire.Reply)) { p.client.weak.Do(cmd, done, p.do) }

func (p *tether) do(cmd *wire.Command, done func(wire.Reply)) {
	if p.client.dead() {
		return
	}
	p.client.run.moved()
	p.send(&errand{cmd: cmd, done: done, round: p.client.round(cmd)})
}

// round numbers a client's questions. All commands of one question have the same
// number, and so has an ask that a master is sent again.
func (c *explorer) round(cmd *wire.Command) int16 {
	var question any = cmd
	if cmd.Op == wire.OpAsk {
		question = cmd.Args[0]
	}
	n, ok := c.rounds[question]
	if !ok {
		n = int16(len(c.rounds)) + 1
		c.rounds[question] = n
	}
	return n
}

func (p *tether) send(e *errand) {
	x, m, number := p.client.run, p.master, p.number
	p.flight = append(p.flight, e)
	sent := p.client.clock.wall
	if ends := sent + shortest(exploredTTL); e.cmd.Op != wire.OpRelease && e.cmd.Op != wire.OpRead {
		p.client.clock.points = append(p.client.clock.points, ends)
	}
	x.put(p.strand(strandCommands, number), m.host(), func() {
		if _, known := p.memories[number]; !known {
			p.accepted, p.memories[number] = max(p.accepted, number), m.memory
		}
		if p.memories[number] != m.memory {
			return // the connection ended with the memory
		}
		if number < p.accepted && e.cmd.Op == wire.OpAcquire {
			m.late = e.cmd.Args[0]
		}
		value, err := m.exec(p.client, e.cmd, sent)
		x.put(p.strand(strandReplies, number), p.client.host(), func() { p.answered(e, value, err) })
	})
}

// answered hands a reply to its caller.
func (p *tether) answered(e *errand, value any, err error) {
	x := p.client.run
	x.now.round, x.now.vote = e.round, voteOf(value, err)
	if e.over || p.client.dead() {
		return
	}
	p.take(e)
	r := wire.Reply{Value: value}
	if err != nil {
		r = p.fail(e, err)
	}
	e.done(r)
}

// voteOf makes a reply comparable. Lists and bytes are never votes: no two are
// equal.
func voteOf(value any, err error) vote {
	switch v := value.(type) {
	case string, int64:
		return vote{v, v == "OK" || v == int64(1)}
	case nil:
		if err != nil {
			return vote{value: err.Error()}
		}
		return vote{}
	}
	return vote{value: new(int)}
}

func (p *tether) take(e *errand) {
	e.over = true
	for i, o := range p.flight {
		if o == e {
			p.flight = append(p.flight[:i:i], p.flight[i+1:]...)
			return
		}
	}
}

func (p *tether) fail(e *errand, err error) wire.Reply {
	p.owed.Failed(node.PendingRelease{Cmd: e.cmd, Until: e.until}, err)
	return wire.Reply{Err: &wire.Error{Node: p.Addr(), Op: e.cmd.Op, Err: err}}
}

// breaks ends the connection from the client's point of view. Commands under way may have run
// or may still run. A new connection replaces it immediately, and carries the owed releases
// first.
func (p *tether) breaks() {
	c := p.client
	if c.dead() {
		return
	}
	c.run.moved()
	p.number++
	flight := p.flight
	p.flight = nil
	for _, e := range flight {
		e.over = true
		e.done(p.fail(e, node.ErrUnknown))
	}
	p.owed.Deliver(c.clock.mono, func(what node.PendingRelease) error {
		p.send(&errand{cmd: what.Cmd, until: what.Until, done: func(wire.Reply) {}, round: c.round(what.Cmd)})
		return nil
	})
	for _, e := range p.ears {
		p.introduce(e)
	}
}

// Subscribe implements node.Node.
func (p *tether) Subscribe(channel string, listener node.Listener) (cancel func()) {
	c := p.client
	if c.dead() {
		return func() {}
	}
	c.run.moved()
	e := &ear{client: c, channel: channel, listener: listener}
	p.ears = append(p.ears, e)
	p.introduce(e)
	return func() {
		if c.dead() || e.ended {
			return
		}
		c.run.moved()
		e.ended = true
		for i, o := range p.ears {
			if o == e {
				p.ears = append(p.ears[:i:i], p.ears[i+1:]...)
				break
			}
		}
		p.client.run.put(p.strand(strandEars, 0), p.master.host(), func() {
			p.master.run.moved()
			p.master.drop(e)
		})
	}
}

// introduce sends a subscription to the master. Once the master has the subscription, the
// listener's Missed is called, since the listener may have missed messages before.
func (p *tether) introduce(e *ear) {
	m := p.master
	p.client.run.put(p.strand(strandEars, 0), m.host(), func() {
		m.run.moved()
		m.drop(e)
		m.subs = append(m.subs, e)
		m.tell(e, e.listener.Missed)
	})
}

// Close implements node.Node.
func (p *tether) Close() error { return nil }
