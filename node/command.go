package node

import (
	"strconv"
	"time"
)

// Op says what a command is for. The guards admit commands by Op, and errors
// and reports name it.
type Op uint8

const (
	OpAcquire Op = iota + 1 // takes the key if it is free
	OpExtend                // lengthens the TTL of a key that we hold
	OpRepair                // puts back a key that a node lost under a valid lease
	OpRelease               // deletes the key if we hold it
	OpRead                  // changes nothing
	OpWake                  // wakes the first in line
)

func (op Op) String() string {
	switch op {
	case OpAcquire:
		return "acquire"
	case OpExtend:
		return "extend"
	case OpRepair:
		return "repair"
	case OpRelease:
		return "release"
	case OpRead:
		return "read"
	case OpWake:
		return "wake"
	}
	return "op(" + strconv.Itoa(int(op)) + ")"
}

// Command is one request to a master. It is immutable once made and the same
// Command is given to every node of a round.
type Command struct {
	Op     Op
	Name   string   // the Redis command; empty when Script is set
	Script *Script  // run by EVALSHA, by EVAL where the node does not know it
	Keys   []string // the keys, and only they: also what Redis Cluster and ACLs see
	Args   []string // what follows the keys

	// Keep is how long a release that could not be delivered is worth
	// delivering later: the TTL of the key, after which it is gone anyway.
	Keep time.Duration
}

// Acquire is SET key value NX PX ttl, the command that every Redlock client
// sends. The reply is OK, or nil when somebody else holds the key.
func Acquire(key, value string, ttl time.Duration) *Command {
	return set(OpAcquire, key, value, ttl)
}

// Repair is Acquire for a node that lost the key of a lease that is held.
func Repair(key, value string, ttl time.Duration) *Command {
	return set(OpRepair, key, value, ttl)
}

func set(op Op, key, value string, ttl time.Duration) *Command {
	return compose(Command{Op: op, Name: "SET"}, []string{key}, []string{value, "NX", "PX", millis(ttl)})
}

// Probe is Acquire that answers the remaining TTL when somebody else holds the
// key: OK, or PTTL's integer.
func Probe(key, value string, ttl time.Duration) *Command {
	return compose(Command{Op: OpAcquire, Script: ScriptProbe}, []string{key}, []string{value, millis(ttl)})
}

// Line is where those who wait for a lock stand at one node, to be woken one by
// one. It is a sorted set of channels that goes by itself when nobody probes.
type Line struct {
	Key     string        // of the sorted set
	Channel string        // by which we are woken
	Stay    time.Duration // how long the line outlives the last probe
}

// ProbeInLine is Probe that also joins the line when the lock is not free, if
// it is not in it already, and leaves it when it is.
func ProbeInLine(key, value string, ttl time.Duration, line Line) *Command {
	cmd := Probe(key, value, ttl)
	cmd.Keys = append(cmd.Keys, line.Key)
	cmd.Args = append(cmd.Args, line.Channel, millis(line.Stay))
	return cmd
}

// WakeNext wakes the first in line: 1, or 0 when the line was empty.
func WakeNext(line string) *Command {
	return &Command{Op: OpWake, Script: ScriptWake, Keys: []string{line}}
}

// Extend sets the TTL anew if value is still stored: 1 extended, 0 the key is
// absent, -1 somebody else's value is there.
func Extend(key, value string, ttl time.Duration) *Command {
	return compose(Command{Op: OpExtend, Script: ScriptExtend}, []string{key}, []string{value, millis(ttl)})
}

// Release deletes the key if value is still stored, and then wakes the first in
// line, unless line is empty: 1 deleted, 0 absent, -1 somebody else's value is
// there, which stays.
func Release(key, value, line string, ttl time.Duration) *Command {
	cmd := compose(Command{Op: OpRelease, Script: ScriptRelease, Keep: ttl}, []string{key}, []string{value})
	if line != "" {
		cmd.Keys = append(cmd.Keys, line)
	}
	return cmd
}

// Inspect answers the stored value and its remaining TTL in milliseconds, or
// nil and -2.
func Inspect(key string) *Command {
	return &Command{Op: OpRead, Script: ScriptInspect, Keys: []string{key}}
}

// compose puts a command into one piece of memory with its keys and arguments,
// of which none has more than two and four.
func compose(cmd Command, keys, args []string) *Command {
	whole := &struct {
		Command
		keys [2]string
		args [4]string
	}{Command: cmd}
	whole.Keys = append(whole.keys[:0], keys...)
	whole.Args = append(whole.args[:0], args...)
	return &whole.Command
}

// millis renders a TTL as Redis takes it. A TTL is relative, never a point in
// time: an expiry that the client computed would be read by the node's clock
// (S32).
func millis(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
