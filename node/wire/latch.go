package wire

import (
	"slices"
	"strconv"
	"time"
)

// MaxArrivals is how many arrivals a latch may wait for, and how many it takes.
const MaxArrivals = 5000

// Latch names the keys of a latch: the set of arrivals, the memory of the
// master that knew all of them, and their number and digest.
type Latch struct {
	keys    []string
	Channel string // where arrivals are published
}

// LatchOf returns the keys of that generation of the latch, among the keys with the
// given prefix.
func LatchOf(prefix, name, generation string) Latch {
	key := func(what string) string { return prefix + "redlock:" + what + ":" + generation + ":" + name }
	return Latch{[]string{key("latch"), MarkerKey(prefix), key("arrivals"), key("digest")}, key("latch")}
}

// Whole stands among the arrivals in the answer of a master whose set has all arrivals of a
// majority. A master that has lost its memory since, or is new, does not send it, also if it
// has some of the arrivals from an old snapshot.
const Whole = "."

// Arrive notes that id has arrived. The reply is 1, or 0 from a master that does not
// know yet who arrived before. It is an error with the code ARRIVALS if id would be one
// more than most.
func (l Latch) Arrive(id string, keep time.Duration, most int) *Command {
	return &Command{Op: OpCommit, Script: ScriptLatchArrive, Keys: l.keys, Args: []string{id, millis(keep), l.Channel, strconv.Itoa(most)}}
}

// Count answers how many have arrived, and their digest. See ArrivedOf.
func (l Latch) Count(keep time.Duration) *Command {
	return &Command{Op: OpCommit, Script: ScriptLatchCount, Keys: l.keys, Args: []string{millis(keep)}}
}

// Arrived has the arrivals that a master knows. Masters with the same number
// and digest have the same arrivals.
type Arrived struct {
	Number int
	Digest string // empty: there are too many
	Whole  bool   // see Whole
}

// ArrivedOf reads the reply to Count.
func ArrivedOf(r Reply) (a Arrived, ok bool) {
	f, _ := r.Value.([]any)
	if r.Err != nil || len(f) != 3 {
		return Arrived{}, false
	}
	return Arrived{int(integer(f[0])), stringOf(f[1]), integer(f[2]) == 1}, true
}

// Read answers the arrivals, and Whole. It is an error with the code ARRIVALS if they
// are more than ten thousand.
func (l Latch) Read() *Command {
	return &Command{Op: OpCommit, Script: ScriptLatchRead, Keys: l.keys}
}

// Write adds the arrivals of a majority at a master. The reply is 1. A master that has
// lost its memory since refuses: there may have been other arrivals before that.
func (l Latch) Write(ids []string, keep time.Duration) *Command {
	args := append([]string{millis(keep), l.Channel, anyMemory}, ids...)
	return &Command{Op: OpCommit, Script: ScriptLatchWrite, Keys: l.keys, Args: args, Recalls: true}
}

// anyMemory stands in a command that Recalls until it is sent to a master.
const anyMemory = ""

// For returns a command that Recalls for the master with that memory; see
// Marker.Memory.
func (c *Command) For(memory string) *Command {
	bound := *c
	bound.Args = slices.Clone(c.Args)
	bound.Args[2] = memory
	return &bound
}
