package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// cell is a master of a small world: the simulator's keyspace, in which no time
// passes. The end of a TTL is an event like any other. It cannot come before the
// pledge has ended on the clock of the client that it was given to.
type cell struct {
	run    *miniature
	index  int8
	keys   *masters.Keyspace
	subs   []*ear
	memory int // how often it forgot
	writes int16
	wary   bool // it has forgotten pledges that may still run, and grants nothing

	pledges []pledge          // given since it last forgot
	asked   map[string]pledge // by the value that a command was to store
	missed  string            // the value that it was last asked to extend and did not have
	late    string            // the last value that came over a connection that was given up
}

// pledge is a grant, with the latest instant until which the client relies on it.
type pledge struct {
	client *explorer
	ends   time.Duration // on the client's wall clock
}

func newCell(x *miniature, index int) *cell {
	m := &cell{run: x, index: int8(index), asked: map[string]pledge{}}
	m.keys = masters.NewKeyspace(func() int64 { return begins.UnixMicro() })
	m.keys.Publish, m.keys.Listens = m.publish, m.listens
	m.keys.Removed = func(key string, e *masters.Entry) {
		if masters.IsLock(key) {
			x.check.report(simulate.ForeignDelete, fmt.Sprintf("%s deleted the lock of %s at %s", nameOf(m.keys.Caller), nameOf(e.By), m.name()), m.keys.Caller, e.By)
		}
	}
	return m
}

func (m *cell) host() int8   { return firstMaster + m.index }
func (m *cell) name() string { return string(rune('A' + m.index)) }

// shortest is how soon a key with the given TTL can be gone: the master's clock may
// run fast by the drift that is allowed for, and TTLs are rounded to milliseconds.
func shortest(ttl time.Duration) time.Duration {
	return ttl - ttl/100 - time.Millisecond
}

// exec runs a command as the master would, whenever that is.
func (m *cell) exec(c *explorer, cmd *wire.Command, sent time.Duration) (any, error) {
	switch {
	case m.wary && cmd.Op == wire.OpAcquire:
		return nil, fmt.Errorf("%w: it has forgotten what it granted", guard.ErrQuarantined)
	case m.wary && (cmd.Script == wire.ScriptAsk || cmd.Script == wire.ScriptRelease):
		cmd = cmd.Hold()
	}
	switch cmd.Op {
	case wire.OpAcquire, wire.OpAsk, wire.OpExtend, wire.OpRepair:
		m.asked[cmd.Args[0]] = pledge{c, sent + shortest(exploredTTL)}
	}
	before, held := m.print(), m.value()
	m.keys.Caller = int(c.index)
	value, refusal := m.keys.Exec(cmd)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case cmd.Op == wire.OpExtend && value == int64(0):
		m.missed = cmd.Args[0]
	case cmd.Op == wire.OpRepair:
		m.missed = ""
	}
	m.run.check.keeps(m, held, m.value(), true)
	extended := cmd.Op == wire.OpExtend && value == int64(1) // no time passes here, so the keys do not show it
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
	if e := m.keys.Keys[exploredLock]; e != nil {
		return e.Value
	}
	return ""
}

// print returns all that the master stores, as a string to compare.
func (m *cell) print() string {
	s := ""
	for _, k := range slices.Sorted(maps.Keys(m.keys.Keys)) {
		e := m.keys.Keys[k]
		s += k + "\x00" + e.Value
		if e.Queue != nil || e.Texts != nil || e.Hash != nil {
			s += fmt.Sprint(e.Queue, e.Texts, e.Hash)
		}
		s += "\x00"
	}
	return s
}

// promised notes until when a client relies on the lock as stored now. The TTL may end at any
// time after that.
func (m *cell) promised(p pledge) {
	m.pledges = append(m.pledges, p)
	m.expire(p.client, exploredLock, p.ends)
}

// expire adds the event that ends the TTL of a key as stored now. The event does nothing if the
// key is written again before.
func (m *cell) expire(c *explorer, key string, ends time.Duration) {
	m.writes++
	e, write := m.keys.Keys[key], m.writes
	if e == nil {
		return
	}
	e.At = int64(write)
	name := strandName{kind: strandExpiry, master: m.index, number: write}
	st := m.run.put(name, m.host(), func() {
		if m.keys.Keys[key] == e && e.At == int64(write) {
			m.run.moved()
			held := m.value()
			delete(m.keys.Keys, key)
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
	m.keys.Flush()
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
		// Until now no other client could get the forgotten lock.
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

// listens reports whether a channel has a subscriber.
func (m *cell) listens(channel string) bool {
	return slices.ContainsFunc(m.subs, func(e *ear) bool { return e.channel == channel })
}

// publish sends a message to the subscribers of a channel.
func (m *cell) publish(channel, message string) int64 {
	_, text, _ := strings.Cut(message, "\n") // the proof comes first
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

func (m *cell) drop(e *ear) {
	for i, o := range m.subs {
		if o == e {
			m.subs = append(m.subs[:i:i], m.subs[i+1:]...)
			return
		}
	}
}
