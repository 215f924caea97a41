package fleet

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Master is one simulated Redis server: a keyspace on a host, with a run_id that changes
// at every restart.
type Master struct {
	world *world.World
	Index int
	Host  *world.Host
	Keys  *masters.Keyspace
	dice  *world.Dice

	run        int           // how often it started
	started    time.Duration // wall clock at the start
	Refuses    *wire.ServerError
	conns      []*conn
	subs       []*subscriber
	servers    []*server // connections with subscriptions
	Loaded     map[*wire.Script]bool
	Watch      Overseer
	Durable    bool // it loses nothing when it restarts
	Mute       bool // messages are lost
	Deaf       bool // no client may subscribe
	promotions int
	Lapses     int           // how often a fault has changed its keys or its clock
	Lapsed     time.Duration // when one last did
	Stale      string        // its keyspace.memory after the last loss: no client knows of the loss until it changes

	Answers  time.Duration // since when it answers commands
	Remarked bool          // a client has marked it since it last lost its memory, or may have
	Marked   time.Duration // when the first did
	Suspect  time.Duration // when it last lost its memory, or may have

	LapsesThen int // Lapses then
}

func NewMaster(w *world.World, index int, seed uint64) *Master {
	m := &Master{
		world: w,
		Index: index,
		Host:  world.NewHost(w, 1+index, string(rune('A'+index))),
		dice:  world.NewDice(seed, "master", index),

		Loaded: map[*wire.Script]bool{},
	}
	m.Keys = masters.NewKeyspace(func() int64 { return m.Host.Clock.Nanos() / 1000 })
	m.Keys.Publish, m.Keys.Listens = m.publish, m.Listens
	m.started = -time.Hour // older than every guard
	return m
}

// Left returns how long it is until a key expires, by the master's clock.
func (m *Master) Left(until int64) time.Duration {
	if until == 0 {
		return world.Forever
	}
	return time.Duration(until*1e6 - m.Host.Clock.Nanos())
}

// Keeps returns how long the master will keep a key; zero if e is nil.
func (m *Master) Keeps(e *masters.Entry) time.Duration {
	if e == nil {
		return 0
	}
	return m.Left(e.Until)
}

func (m *Master) runID() string { return m.Host.Name + "-" + strconv.Itoa(m.run) }

// exec runs a command as the server would now.
func (m *Master) exec(caller int, cmd *wire.Command) (any, *wire.ServerError) {
	if m.Refuses != nil && refused(m.Refuses.Code, cmd) {
		return nil, m.Refuses
	}
	if m.Keys.Replica && refused(readOnly.Code, cmd) {
		return nil, readOnly
	}
	m.Keys.Caller = caller
	strange := m.Refuses != nil && m.Refuses.Code == plan.Odd && cmd.Op != wire.OpRead
	if strange && m.dice.Chance(500) {
		return m.odd(), nil
	}
	marker := m.Marker()
	value, err := m.Keys.Exec(cmd)
	if !m.Remarked && cmd.Script == wire.ScriptMarker && m.Marker() != marker {
		m.Remarked, m.Marked = true, m.world.Now
	}
	if strange {
		value, err = m.odd(), nil
	}
	return value, err
}

// odd draws an answer that belongs to no question.
func (m *Master) odd() any {
	if m.dice.Chance(500) {
		return "QUEUED"
	}
	return []any{}
}

// refused reports whether a server that answers with that code refuses the command. A loading
// or busy server refuses all commands, a read-only server refuses writes, and a server that is
// out of memory still deletes.
func refused(code string, cmd *wire.Command) bool {
	writes := cmd.Op != wire.OpRead || cmd.Script == wire.ScriptMarker && (cmd.Args[1] != "" || len(cmd.Args) > 3 && cmd.Args[3] != "")
	switch code {
	case plan.Odd:
		return false
	case "LOADING", "BUSY":
		return true
	case "OOM":
		return writes && cmd.Op != wire.OpRelease
	}
	return writes
}

// Kill stops the server. Its clients see their connections break, unless the whole machine went
// down silently: then no host is left to close the connections.
func (m *Master) Kill(silently bool) {
	m.Host.Crash()
	m.subs, m.servers = nil, nil
	clear(m.Loaded)
	conns := m.conns
	m.conns = nil
	for _, c := range conns {
		c.in.waiting = nil // replies that it had not sent yet
		if !silently {
			c.hangUp()
		}
	}
}

// Start brings the server up with the given keys, as another run.
func (m *Master) Start(keys map[string]*masters.Entry) {
	m.Host.Down = false
	m.run++
	m.started = m.Host.Clock.WallNow()
	m.Keys.Replica, m.Keys.Origin = false, ""
	m.Keys.Keys = keys
	m.Watch.Forgot(m, true)
	if m.Durable && keys[MarkerKey] != nil {
		return // it has forgotten nothing
	}
	m.Suspected()
}

// Follow makes the server a replica of another, whose keys it has then. It goes on as the
// same run, with the same connections.
func (m *Master) Follow(keys map[string]*masters.Entry) {
	m.Keys.Replica = true
	m.Keys.Keys = keys
	m.Watch.Forgot(m, true)
	m.Suspected()
}

// Promote makes a replica a master.
func (m *Master) Promote() {
	m.Keys.Replica = false
	m.promotions++
	m.Suspected()
	m.Keys.Origin = m.runID() + "-" + strconv.Itoa(m.promotions)
}

var readOnly = wire.Server("READONLY You can't write against a read only replica.")

// Partly forgets, with even odds, every key that was stored within the last d: it may
// not have reached the disk.
func (m *Master) Partly(keys map[string]*masters.Entry, d time.Duration) map[string]*masters.Entry {
	since := m.Keys.Millis() - d.Milliseconds()
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if keys[k].At >= since && m.dice.Chance(500) {
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
func (m *Master) greet(caller int, look *wire.Command) (any, *wire.ServerError) {
	fields, err := m.exec(caller, look)
	if err != nil {
		return nil, err
	}
	return serverInfo{m.runID(), m.uptime(), fields}, nil
}

// uptime is uptime_in_seconds: the difference between two instants in whole seconds of
// the wall clock, and so up to a second too long (S33).
func (m *Master) uptime() time.Duration {
	up := m.Host.Clock.WallNow().Truncate(time.Second) - m.started.Truncate(time.Second)
	return max(0, up)
}

// Marker returns the clients' marker, or the empty string.
func (m *Master) Marker() string {
	if e := m.Keys.Find(MarkerKey); e != nil {
		return e.Value
	}
	return ""
}

var MarkerKey = wire.MarkerKey("")

// DeclareNew marks the master as an operator does who knows that no lock was
// ever held there (operate.Init), just now or long ago.
func (m *Master) DeclareNew(group guard.GroupID, hold time.Duration, longAgo bool) {
	now := time.UnixMicro(m.Keys.Now()).Add(time.Duration(m.Index) * 4 * time.Microsecond) // one after the other
	if longAgo {
		now = now.Add(-365 * 24 * time.Hour)
	}
	m.Keys.Store(MarkerKey, &masters.Entry{Value: guard.NewMaster(m.runID(), now, hold, group).String()})
	m.Remarked, m.Marked = true, -world.Forever
}

// MayBeNew reports whether operate.Init takes the master for a new one: it has no locks, and
// no marker other than one of an Init that failed halfway.
func (m *Master) MayBeNew() bool {
	marker, _ := guard.ParseMarker(m.Marker())
	for _, key := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
		if masters.Holds(key) && m.Keys.Find(key) != nil {
			return false
		}
	}
	return marker.RunID == "" || marker.JustDeclared(time.UnixMicro(m.Keys.Now()))
}

// Regroup marks the master as an operator does who moves it to another group
// (operate.Regroup).
func (m *Master) Regroup(group guard.GroupID, hold time.Duration) {
	over, _ := guard.ParseMarker(m.Marker())
	mark := over.Regrouped(m.runID(), time.UnixMicro(m.Keys.Now()), hold, group)
	m.Keys.Store(MarkerKey, &masters.Entry{Value: mark.String()})
	m.Remarked, m.Marked = true, m.world.Now
}

// Listens reports whether a channel has a subscriber.
func (m *Master) Listens(channel string) bool {
	return slices.ContainsFunc(m.subs, func(s *subscriber) bool { return !s.gone && s.channel == channel }) ||
		slices.ContainsFunc(m.servers, func(s *server) bool { return s.channels[channel] })
}

// publish sends a message to the subscribers of a channel, and returns how many there
// are.
func (m *Master) publish(channel, message string) int64 {
	n := int64(0)
	live := m.subs[:0]
	for _, s := range m.subs {
		if s.gone {
			continue
		}
		live = append(live, s)
		if s.channel == channel {
			n++
			if !m.Mute {
				s.conn.link.Wire.send(&s.conn.news, s.conn.link.host, world.Action(func() { s.deliver(message) }), Inward)
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

// Restarted reports whether it has restarted.
func (m *Master) Restarted() bool { return m.run > 0 }

// Suspected notes that the master may have lost its memory.
func (m *Master) Suspected() { m.Remarked, m.Suspect, m.LapsesThen = false, m.world.Now, m.Lapses }

// Overseer observes the actions of masters.
type Overseer interface {
	// Ran is called for every command that a master has run and not refused. closed says
	// that it came over a connection that its client had closed.
	Ran(m *Master, client int, cmd *wire.Command, closed bool)
	// Forgot is called when a fault has taken keys from a master. guarded says that the
	// guards protect against that fault.
	Forgot(m *Master, guarded bool)
}
