package node

import (
	"slices"
	"time"
)

// Latch names the keys of a latch: the set of those who have arrived, and the memory of
// the master that knew all of them.
type Latch struct {
	keys    []string
	Channel string // where arrivals are told
}

// LatchOf returns the keys of that generation of the latch, among the keys with the
// given prefix.
func LatchOf(prefix, name, generation string) Latch {
	key := prefix + "redlock:latch:" + generation + ":" + name
	return Latch{[]string{key, MarkerKey(prefix), prefix + "redlock:arrivals:" + generation + ":" + name}, key}
}

// Whole is told with those who have arrived by a master where a majority's arrivals
// are all in its set. One that has lost its memory since, or is new, does not tell it,
// also if it has some of them from an old snapshot.
const Whole = "."

// Arrive notes that id has arrived. The reply is 1, or 0 from a master that does not
// know yet who arrived before.
func (l Latch) Arrive(id string, keep time.Duration) *Command {
	return &Command{Op: OpCommit, Script: ScriptLatchArrive, Keys: l.keys, Args: []string{id, millis(keep), l.Channel}}
}

// Read answers who has arrived, and Whole.
func (l Latch) Read() *Command {
	return &Command{Op: OpCommit, Script: ScriptLatchRead, Keys: l.keys}
}

// Write tells a master who has arrived at a majority. The reply is 1. A master that has
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
