package wire

import (
	"strconv"
	"time"
)

// These are the questions by which a client gets to know a master, and what their answers
// say. A server that does not know a question or forbids it (miniredis, managed services)
// leaves its subject open.

// Greeting asks what must be known of a server before it may vote: its role, its
// replication, the server itself, and what a look tells.
func Greeting(prefix string) []*Command {
	return []*Command{
		{Op: OpRead, Name: "ROLE"},
		{Op: OpRead, Name: "INFO", Args: []string{"replication"}},
		{Op: OpRead, Name: "INFO", Args: []string{"server"}},
		Look(prefix),
	}
}

// RoleOf reads ROLE, or INFO replication where ROLE is unknown or forbidden. Empty: it is
// not known.
func RoleOf(role, replication Reply) string {
	if f := fields(role); len(f) > 0 {
		return Text(f[0])
	}
	return InfoField(Text(replication.Value), "role")
}

// Host is what INFO server says.
type Host struct {
	RunID   string        // empty: unknown
	Version string        // of Redis or Valkey; empty: unknown
	Uptime  time.Duration // negative: unknown
}

// HostOf reads INFO server.
func HostOf(r Reply) Host {
	info := Text(r.Value)
	h := Host{RunID: InfoField(info, "run_id"), Version: InfoField(info, "valkey_version"), Uptime: -1}
	if h.Version == "" {
		h.Version = InfoField(info, "redis_version")
	}
	if s, err := strconv.ParseInt(InfoField(info, "uptime_in_seconds"), 10, 64); err == nil {
		// A clock that was set back makes the uptime negative.
		h.Uptime = time.Duration(max(0, s)) * time.Second
	}
	return h
}

// Look reads the marker, the clock, the replication, and what clients have written of the
// clock. See SeenOf.
func Look(prefix string) *Command { return Mark(prefix, "", "", "", "") }

// LookAlone is Look for a user without rights on the keys beside the marker.
func LookAlone(prefix string) *Command { return Mark(prefix, "", "") }

// Mark is Look that first replaces the marker, and the offsets of the clock, each if the
// stored text is still the expected one: over, marker, offsetsOver, offsets.
func Mark(prefix string, args ...string) *Command {
	return &Command{Op: OpRead, Script: ScriptMarker, Keys: []string{MarkerKey(prefix)}, Args: args}
}

// Seen is the answer to Look.
type Seen struct {
	Marker    string
	Time      time.Time // zero: unknown
	Replica   bool
	Promotion string // see ReadReplication
	Role      bool   // it tells its replication
	Offsets   string // what clients have written of the clock
	Secret    bool   // that can be neither read nor written
}

// SeenOf reads a Seen.
func SeenOf(r Reply) (s Seen, ok bool) {
	f := fields(r)
	if r.Err != nil || len(f) != 5 {
		return Seen{}, false
	}
	s = Seen{Marker: Text(f[0]), Time: timeOf(Text(f[1]), Text(f[2])), Offsets: Text(f[4]), Secret: f[4] == nil}
	s.Replica, s.Promotion = ReadReplication(Text(f[3]))
	s.Role = Text(f[3]) != ""
	return s, true
}

// PageOf reads the answer to SCAN or SSCAN: where to go on, "0" at the end, and the keys or
// members of the page.
func PageOf(r Reply) (cursor string, found []string, err error) {
	f := fields(r)
	if r.Err != nil || len(f) != 2 {
		return "", nil, ErrUnreadable
	}
	list, _ := f[1].([]any)
	for _, each := range list {
		found = append(found, Text(each))
	}
	return Text(f[0]), found, nil
}
