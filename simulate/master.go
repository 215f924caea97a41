package simulate

import (
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// master is one simulated Redis server: a keyspace on a host, with a run_id that changes
// at every restart.
type master struct {
	world *world
	index int
	host  *host
	keys  *masters.Keyspace
	dice  *stream

	run        int           // how often it started
	started    time.Duration // wall clock at the start
	refuses    *wire.ServerError
	conns      []*conn
	subs       []*subscriber
	servers    []*server // those with subscriptions
	loaded     map[*wire.Script]bool
	check      *checker
	mute       bool // messages are lost
	deaf       bool // nobody may subscribe
	promotions int
	lapses     int           // how often a fault has changed its keys or its clock
	lapsed     time.Duration // when one last did
	stale      string        // its keyspace.memory after the last loss: no client knows of the loss until it changes

	answers  time.Duration // since when it answers what it is asked
	remarked bool          // a client has marked it since it last lost its memory, or may have
	marked   time.Duration // when the first did
	suspect  time.Duration // when it last lost its memory, or may have

	lapsesThen int // lapses then
}

func newMaster(w *world, index int, seed uint64) *master {
	m := &master{
		world: w,
		index: index,
		host:  newHost(w, 1+index, string(rune('A'+index))),
		dice:  newStream(seed, "master", index),

		loaded: map[*wire.Script]bool{},
	}
	m.keys = masters.NewKeyspace(func() int64 { return m.host.clock.nanos() / 1000 })
	m.keys.Publish, m.keys.Listens = m.publish, m.listens
	m.started = -time.Hour // older than every guard
	return m
}

// left returns how long it is until a key expires, by the master's clock.
func (m *master) left(until int64) time.Duration {
	if until == 0 {
		return forever
	}
	return time.Duration(until*1e6 - m.host.clock.nanos())
}

// forever is longer than any schedule.
const forever = 1000 * time.Hour

// keeps returns how long the master will keep a key; zero if there is none.
func (m *master) keeps(e *masters.Entry) time.Duration {
	if e == nil {
		return 0
	}
	return m.left(e.Until)
}

func (m *master) runID() string { return m.host.name + "-" + strconv.Itoa(m.run) }

// exec runs a command as the server would now.
func (m *master) exec(caller int, cmd *wire.Command) (any, *wire.ServerError) {
	if m.refuses != nil && refused(m.refuses.Code, cmd) {
		return nil, m.refuses
	}
	if m.keys.Replica && refused(readOnly.Code, cmd) {
		return nil, readOnly
	}
	m.keys.Caller = caller
	strange := m.refuses != nil && m.refuses.Code == odd && cmd.Op != wire.OpRead
	if strange && m.dice.chance(500) {
		return m.odd(), nil
	}
	marker := m.marker()
	value, err := m.keys.Exec(cmd)
	if !m.remarked && cmd.Script == wire.ScriptMarker && m.marker() != marker {
		m.remarked, m.marked = true, m.world.now
	}
	if strange {
		value, err = m.odd(), nil
	}
	return value, err
}

// odd is the code of a server whose answers do not belong to the questions, as those of
// a proxy may not. It does what it is asked, or does not.
const odd = "ODD"

// odd draws an answer that belongs to no question.
func (m *master) odd() any {
	if m.dice.chance(500) {
		return "QUEUED"
	}
	return []any{}
}

// refused reports whether a server that answers with that code refuses the command. One
// that is loading or busy refuses all commands, one that may not write refuses writes,
// and one that is out of memory still deletes.
func refused(code string, cmd *wire.Command) bool {
	writes := cmd.Op != wire.OpRead || cmd.Script == wire.ScriptMarker && (cmd.Args[1] != "" || len(cmd.Args) > 3 && cmd.Args[3] != "")
	switch code {
	case odd:
		return false
	case "LOADING", "BUSY":
		return true
	case "OOM":
		return writes && cmd.Op != wire.OpRelease
	}
	return writes
}

// kill stops the server. Its clients are told that their connections broke, unless the
// whole machine went down: then nobody is left to tell them.
func (m *master) kill(silently bool) {
	m.host.crash()
	m.subs, m.servers = nil, nil
	clear(m.loaded)
	conns := m.conns
	m.conns = nil
	for _, c := range conns {
		c.in.waiting = nil // what it had not sent yet
		if !silently {
			c.hangUp()
		}
	}
}

// start brings the server up with the given keys, as another run.
func (m *master) start(keys map[string]*masters.Entry) {
	m.host.down = false
	m.run++
	m.started = m.host.clock.wallNow()
	m.keys.Replica, m.keys.Origin = false, ""
	m.keys.Keys = keys
	m.check.forgot(m, true)
	if m.check.trial.config.durable && keys[markerKey] != nil {
		return // it has forgotten nothing
	}
	m.suspected()
}

// follow makes the server a replica of another, whose keys it has then. It goes on as the
// same run, with the same connections.
func (m *master) follow(keys map[string]*masters.Entry) {
	m.keys.Replica = true
	m.keys.Keys = keys
	m.check.forgot(m, true)
	m.suspected()
}

// promote makes a replica a master.
func (m *master) promote() {
	m.keys.Replica = false
	m.promotions++
	m.suspected()
	m.keys.Origin = m.runID() + "-" + strconv.Itoa(m.promotions)
}

var readOnly = wire.Server("READONLY You can't write against a read only replica.")

// partly forgets, with even odds, every key that was stored within the last d: it may
// not have reached the disk.
func (m *master) partly(keys map[string]*masters.Entry, d time.Duration) map[string]*masters.Entry {
	since := m.keys.Millis() - d.Milliseconds()
	for _, k := range sortedKeys(keys) {
		if keys[k].At >= since && m.dice.chance(500) {
			delete(keys, k)
		}
	}
	return keys
}

// serverInfo is what the server says of itself in the handshake.
type serverInfo struct {
	runID  string
	uptime time.Duration // negative: it was not asked
	fields any           // the marker and the time
}

// greet answers the handshake.
func (m *master) greet(caller int, look *wire.Command) (any, *wire.ServerError) {
	fields, err := m.exec(caller, look)
	if err != nil {
		return nil, err
	}
	return serverInfo{m.runID(), m.uptime(), fields}, nil
}

// uptime is uptime_in_seconds: the difference between two instants in whole seconds of
// the wall clock, and so up to a second too long (S33).
func (m *master) uptime() time.Duration {
	up := m.host.clock.wallNow().Truncate(time.Second) - m.started.Truncate(time.Second)
	return max(0, up)
}

// marker returns the clients' marker, or the empty string.
func (m *master) marker() string {
	if e := m.keys.Find(markerKey); e != nil {
		return e.Value
	}
	return ""
}

var markerKey = wire.MarkerKey("")

// declareNew marks the master as an operator does who knows that no lock was
// ever held there (operate.Init), just now or long ago.
func (m *master) declareNew(group node.GroupID, hold time.Duration, longAgo bool) {
	now := time.UnixMicro(m.keys.Now())
	if longAgo {
		now = now.Add(-365 * 24 * time.Hour)
	}
	m.keys.Store(markerKey, &masters.Entry{Value: node.NewMaster(m.runID(), now, hold, group).String()})
	m.remarked, m.marked = true, -forever
}

// mayBeNew reports whether operate.Init takes the master for a new one: it has no locks, and
// no marker other than one of an Init that failed halfway.
func (m *master) mayBeNew() bool {
	marker, _ := node.ParseMarker(m.marker())
	for _, key := range sortedKeys(m.keys.Keys) {
		if masters.Holds(key) && m.keys.Find(key) != nil {
			return false
		}
	}
	return marker.RunID == "" || marker.JustDeclared(time.UnixMicro(m.keys.Now()))
}

// regroup marks the master as an operator does who moves it to another group
// (operate.Regroup).
func (m *master) regroup(group node.GroupID, hold time.Duration) {
	over, _ := node.ParseMarker(m.marker())
	mark := over.Regrouped(m.runID(), time.UnixMicro(m.keys.Now()), hold, group)
	m.keys.Store(markerKey, &masters.Entry{Value: mark.String()})
	m.remarked, m.marked = true, m.world.now
}

// listens reports whether somebody is subscribed to a channel.
func (m *master) listens(channel string) bool {
	return slices.ContainsFunc(m.subs, func(s *subscriber) bool { return !s.gone && s.channel == channel }) ||
		slices.ContainsFunc(m.servers, func(s *server) bool { return s.channels[channel] })
}

// publish sends a message to the subscribers of a channel, and returns how many there
// are.
func (m *master) publish(channel, message string) int64 {
	n := int64(0)
	live := m.subs[:0]
	for _, s := range m.subs {
		if s.gone {
			continue
		}
		live = append(live, s)
		if s.channel == channel {
			n++
			if !m.mute {
				s.conn.link.wire.send(&s.conn.news, s.conn.link.host, action(func() { s.deliver(message) }), inward)
			}
		}
	}
	m.subs = live
	listening := m.servers[:0]
	for _, s := range m.servers {
		if s.channels == nil {
			continue
		}
		listening = append(listening, s)
		if s.channels[channel] {
			s.message(channel, message)
			n++
		}
	}
	m.servers = listening
	return n
}
