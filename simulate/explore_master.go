package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// cell is a master of a small world: the keyspace of the simulator, in which no
// time passes. That a TTL is over is an event like any other, which cannot come
// before the pledge has ended by the clock of the client it was given to.
type cell struct {
	run    *miniature
	index  int8
	keys   *keyspace
	subs   []*ear
	memory int // how often it forgot
	writes int16
	wary   bool // it has forgotten pledges that may still run, and grants nothing

	pledges []pledge          // since it started to remember
	asked   map[string]pledge // by the value that was to be stored
	missed  string            // the value that it was last asked to extend and did not have
	late    string            // the last value that came by a connection that was given up
}

// pledge is a grant, and until when the client relies on it at most.
type pledge struct {
	client *explorer
	ends   time.Duration // on the client's wall clock
}

func newCell(x *miniature, index int) *cell {
	m := &cell{run: x, index: int8(index), asked: map[string]pledge{}}
	m.keys = newKeyspace(func() int64 { return epoch.UnixMicro() })
	m.keys.publish = m.publish
	m.keys.removed = func(key string, e *entry) {
		if isLock(key) {
			x.check.report(ForeignDelete, fmt.Sprintf("%s deleted the lock of %s at %s", clientName(m.keys.caller), clientName(e.by), m.name()), m.keys.caller, e.by)
		}
	}
	return m
}

func (m *cell) host() int8   { return firstMaster + m.index }
func (m *cell) name() string { return string(rune('A' + m.index)) }

// shortest is how soon a key with the given TTL can be gone: the master's clock
// runs fast by as much as is allowed for, and Redis and we round to
// milliseconds.
func shortest(ttl time.Duration) time.Duration {
	return ttl - ttl/100 - time.Millisecond
}

// exec runs a command as the master would, whenever that is.
func (m *cell) exec(c *explorer, cmd *node.Command, sent time.Duration) (any, error) {
	switch {
	case m.wary && cmd.Op == node.OpAcquire:
		return nil, fmt.Errorf("%w: it has forgotten what it granted", node.ErrQuarantined)
	case m.wary && (cmd.Script == node.ScriptAsk || cmd.Script == node.ScriptRelease):
		cmd = cmd.Hold()
	}
	switch cmd.Op {
	case node.OpAcquire, node.OpAsk, node.OpExtend, node.OpRepair:
		m.asked[cmd.Args[0]] = pledge{c, sent + shortest(exploredTTL)}
	}
	before, held := m.print(), m.value()
	m.keys.caller = int(c.index)
	value, refusal := m.keys.exec(cmd)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case cmd.Op == node.OpExtend && value == int64(0):
		m.missed = cmd.Args[0]
	case cmd.Op == node.OpRepair:
		m.missed = ""
	}
	m.run.check.keeps(m, held, m.value(), true)
	extended := cmd.Op == node.OpExtend && value == int64(1) // which is not seen where no time passes
	if !extended && m.print() == before {
		return value, nil
	}
	m.run.moved()
	if now := m.value(); now != "" && (now != held || extended) {
		m.promised(m.asked[now])
	}
	return value, nil
}

// value is what the master stores for the lock, or empty.
func (m *cell) value() string {
	if e := m.keys.keys[exploredLock]; e != nil {
		return e.value
	}
	return ""
}

// print is all that the master stores, comparable.
func (m *cell) print() string {
	s := ""
	for _, k := range sortedKeys(m.keys.keys) {
		e := m.keys.keys[k]
		s += k + "\x00" + e.value
		if e.queue != nil || e.texts != nil || e.hash != nil {
			s += fmt.Sprint(e.queue, e.texts, e.hash)
		}
		s += "\x00"
	}
	return s
}

// promised notes until when a client relies on what is stored now, and lets the
// TTL end at any time after that.
func (m *cell) promised(p pledge) {
	m.pledges = append(m.pledges, p)
	m.expire(p.client, exploredLock, p.ends)
}

// expire makes the end of the TTL of what is stored now. It is no end if the
// key was written again before.
func (m *cell) expire(c *explorer, key string, ends time.Duration) {
	m.writes++
	e, write := m.keys.keys[key], m.writes
	if e == nil {
		return
	}
	e.at = int64(write)
	name := strandName{kind: strandExpiry, master: m.index, number: write}
	st := m.run.put(name, m.host(), func() {
		if m.keys.keys[key] == e && e.at == int64(write) {
			m.run.moved()
			held := m.value()
			delete(m.keys.keys, key)
			m.run.check.keeps(m, held, m.value(), false)
		}
	})
	st.lazy = true
	st.ready = func() bool { return c.over(ends) }
	st.caused = func() []int { return c.ended(ends) }
}

// forget is a restart without data. The guards of the clients keep the master
// from granting until everything that it had promised is over.
func (m *cell) forget() {
	m.run.moved()
	m.memory++
	m.missed = ""
	forgotten := m.value()
	m.keys.flush()
	m.subs = nil
	m.wary = !m.run.world.unguarded
	pledges := m.pledges
	m.pledges = nil
	for _, c := range m.run.clients {
		p := c.tethers[m.index]
		m.run.put(p.strand(strandReplies, p.accepted), c.host(), p.breaks)
	}
	if !m.wary {
		m.run.check.keeps(m, forgotten, "", false)
		return
	}
	st := m.run.put(strandName{kind: strandTrust, master: m.index, number: int16(m.memory)}, m.host(), func() {
		m.run.moved()
		m.wary = false
		// Until now nobody else could get what was forgotten.
		if m.value() != forgotten {
			m.run.check.keeps(m, forgotten, "", false)
		}
	})
	st.lazy = true
	st.ready = func() bool {
		for _, p := range pledges {
			if !p.client.over(p.ends) {
				return false
			}
		}
		return true
	}
	st.caused = func() []int {
		var steps []int
		for _, p := range pledges {
			steps = append(steps, p.client.ended(p.ends)...)
		}
		return steps
	}
}

// publish tells those who listen to a channel.
func (m *cell) publish(channel, message string) int64 {
	_, text, _ := strings.Cut(message, "\n") // behind the marker
	n := int64(0)
	for _, e := range m.subs {
		if e.channel == channel {
			m.tell(e, func() { e.listener.Heard(text) })
			n++
		}
	}
	return n
}

func (m *cell) tell(e *ear, what func()) {
	name := strandName{kind: strandNews, client: e.client.index, master: m.index}
	m.run.put(name, e.client.host(), func() {
		if !e.ended && !e.client.dead() {
			m.run.moved()
			what()
		}
	})
}

// ear is what a client wants to hear of at a master.
type ear struct {
	client   *explorer
	channel  string
	listener node.Listener
	ended    bool
}

// tether is a client's connection to a master: a node.Node on which every message
// arrives when the search says so. What one connection carries stays in order.
type tether struct {
	client   *explorer
	master   *cell
	number   int16         // of the connection
	accepted int16         // of the connection, as the master knows
	memories map[int16]int // of the master, when it accepted each connection
	flight   []*errand
	owed     *node.PendingReleases
	ears     []*ear
}

// errand is a command under way.
type errand struct {
	cmd   *node.Command
	done  func(node.Reply)
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
func (p *tether) Do(cmd *node.Command, done func(node.Reply)) {
	if p.client.dead() {
		return
	}
	p.client.run.moved()
	p.send(&errand{cmd: cmd, done: done, round: p.client.round(cmd)})
}

// round numbers the questions of a client. The commands of one question are one, and
// an ask that a master is sent again is still the same question.
func (c *explorer) round(cmd *node.Command) int16 {
	var question any = cmd
	if cmd.Op == node.OpAsk {
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
	if ends := sent + shortest(exploredTTL); e.cmd.Op != node.OpRelease && e.cmd.Op != node.OpRead {
		p.client.clock.points = append(p.client.clock.points, ends)
	}
	x.put(p.strand(strandCommands, number), m.host(), func() {
		if _, known := p.memories[number]; !known {
			p.accepted, p.memories[number] = max(p.accepted, number), m.memory
		}
		if p.memories[number] != m.memory {
			return // the connection ended with the memory
		}
		if number < p.accepted && e.cmd.Op == node.OpAcquire {
			m.late = e.cmd.Args[0]
		}
		value, err := m.exec(p.client, e.cmd, sent)
		x.put(p.strand(strandReplies, number), p.client.host(), func() { p.answered(e, value, err) })
	})
}

// answered hands a reply to the one who asked.
func (p *tether) answered(e *errand, value any, err error) {
	x := p.client.run
	x.now.round, x.now.vote = e.round, voteOf(value, err)
	if e.over || p.client.dead() {
		return
	}
	p.take(e)
	r := node.Reply{Value: value}
	if err != nil {
		r = p.fail(e, err)
	}
	e.done(r)
}

// voteOf makes a reply comparable. Lists and bytes never are votes.
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

func (p *tether) fail(e *errand, err error) node.Reply {
	p.owed.Failed(node.PendingRelease{Cmd: e.cmd, Until: e.until}, err)
	return node.Reply{Err: &node.Error{Node: p.Addr(), Op: e.cmd.Op, Err: err}}
}

// breaks ends the connection, as the client sees it: what was under way may
// still run, or has. A new one is there at once, and on it first what is owed.
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
		p.send(&errand{cmd: what.Cmd, until: what.Until, done: func(node.Reply) {}, round: c.round(what.Cmd)})
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

// introduce tells the master who listens, and the listener that it does, because
// messages may have been missed before.
func (p *tether) introduce(e *ear) {
	m := p.master
	p.client.run.put(p.strand(strandEars, 0), m.host(), func() {
		m.run.moved()
		m.drop(e)
		m.subs = append(m.subs, e)
		m.tell(e, e.listener.Missed)
	})
}

func (m *cell) drop(e *ear) {
	for i, o := range m.subs {
		if o == e {
			m.subs = append(m.subs[:i:i], m.subs[i+1:]...)
			return
		}
	}
}

// Close implements node.Node.
func (p *tether) Close() error { return nil }
