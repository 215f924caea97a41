package node

import "time"

// State is where a Master stands.
type State uint8

const (
	StateConnecting State = iota // the first attempt is under way
	StateConnected               // it takes commands
	StateDown                    // not connected; attempts go on
	StateClosed                  // by Close
)

func (s State) String() string {
	return [...]string{"connecting", "connected", "down", "closed"}[s]
}

// Status is a snapshot of a Master, for people and metrics.
type Status struct {
	Addr    string
	State   State
	RunID   string        // of the last connection; empty: unknown
	Version string        // of Redis or Valkey; empty: unknown
	Role    string        // master; empty: unknown
	Uptime  time.Duration // at the last handshake; negative: unknown
	// RoundTrip is what a PING took at the last handshake. A master whose round
	// trip is longer than the node timeout never votes.
	RoundTrip time.Duration
	// Latency is the round trip of the last heartbeat. There is one every second while the client is
	// used. It is known of every master, unlike votes, of which the slowest are not waited for.
	Latency time.Duration
	Unknown []string // what the master would not tell: role, run_id, uptime, version, marker, time

	Quarantine  time.Duration // for how long it must not grant, at least; see also Votes
	Reason      string        // of the quarantine, or what the guard could not know
	ClockOffset time.Duration // its clock minus ours, when it last told
	LastError   error         // the last trouble, also when it is over

	Silent bool // connected, but without any answer for a while
	Counts
}

// Counts are the numbers of a Status.
type Counts struct {
	InFlight    int    // commands without an answer
	Undelivered int    // releases that are still owed to the master
	Dropped     uint64 // releases that were owed but too many
	Commands    uint64 // given to a connection, heartbeats too
	Writes      uint64 // system calls that it took
	Reconnects  uint64
}

// Status returns the present knowledge of the master.
func (m *Master) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	server := &m.contact.server
	s := Status{
		Addr: m.Addr(), State: m.contact.state,
		RunID: server.RunID, Version: server.Version, Role: server.role,
		Uptime: server.Uptime, RoundTrip: server.roundTrip, Latency: m.seen.latency, Unknown: server.unknown,
		Quarantine: m.trust.guard.Rest(), Reason: m.trust.reason,
		ClockOffset: m.seen.offset, LastError: m.contact.lastError,
		Counts: Counts{
			Undelivered: m.pending.Len(), Dropped: m.pending.dropped,
			Commands: m.ended.commands, Writes: m.ended.writes, Reconnects: m.ended.reconnects,
		},
	}
	if c := m.live.Load(); c != nil {
		s.Commands += c.accepted()
		s.Writes += c.writes.Load()
		s.InFlight = c.underway()
		s.Silent = c.silent.Load()
	}
	return s
}
