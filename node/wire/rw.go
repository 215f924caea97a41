package wire

import (
	"strconv"
	"time"
)

// ReadWrite names the keys of a read-write lock. The writer is the lock itself.
type ReadWrite struct{ keys []string }

// ReadWriteOf returns the keys of the read-write lock of that name, among the keys
// with the given prefix.
func ReadWriteOf(prefix, name string) ReadWrite {
	q := QueueOf(prefix, name)
	return ReadWrite{[]string{
		prefix + name, q.Order, q.Entries, q.Marker,
		prefix + "redlock:readers:" + name, prefix + "redlock:reading:" + name, prefix + "redlock:intent:" + name,
	}}
}

// Write takes the lock for writing; see Read.
func (rw ReadWrite) Write(op Op, value string, ttl time.Duration, ticket int64) *Command {
	return argue(Command{Op: op, Script: ScriptWrite, Keys: rw.keys}, value, millis(ttl), orNone(ticket))
}

// Read takes the lock for reading, for OpAcquire; for OpAsk it waits for that with
// the given ticket. The reply is OK, or the remaining TTL in milliseconds, if it is
// known, and 0.
func (rw ReadWrite) Read(op Op, value string, ttl time.Duration, ticket int64) *Command {
	return argue(Command{Op: op, Script: ScriptRead, Keys: rw.keys}, value, millis(ttl), orNone(ticket))
}

// ExtendWriter is Extend for a writer.
func (rw ReadWrite) ExtendWriter(value string, ttl time.Duration) *Command {
	return rw.command(OpExtend, ScriptWriteExtend, value, ttl)
}

// ExtendReader is Extend for a reader, and makes a writer a reader.
func (rw ReadWrite) ExtendReader(value string, ttl time.Duration) *Command {
	return rw.command(OpExtend, ScriptReadExtend, value, ttl)
}

// RepairWriter is Repair for a writer, at a master without readers.
func (rw ReadWrite) RepairWriter(value string, ttl time.Duration) *Command {
	return rw.command(OpRepair, ScriptWriteRepair, value, ttl)
}

// RepairReader is Repair for a reader, at a master without a writer.
func (rw ReadWrite) RepairReader(value string, ttl time.Duration) *Command {
	return rw.command(OpRepair, ScriptReadRepair, value, ttl)
}

// Release is Release for readers and writers.
func (rw ReadWrite) Release(value string, ttl time.Duration) *Command {
	return argue(Command{Op: OpRelease, Script: ScriptRWRelease, Keys: rw.keys, Keep: ttl}, value)
}

func (rw ReadWrite) command(op Op, s *Script, value string, ttl time.Duration) *Command {
	return argue(Command{Op: op, Script: s, Keys: rw.keys}, value, millis(ttl))
}

// orNone renders a ticket; zero is none.
func orNone(ticket int64) string {
	if ticket == 0 {
		return none
	}
	return strconv.FormatInt(ticket, 10)
}

// none stands for a missing argument.
const none = "-"
