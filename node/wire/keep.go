package wire

import (
	"strconv"
	"time"
)

// A lock may be kept: then it stays at the masters for some time although it is released.
// Each master counts that time by its own clock, in a key beside the lock: a client whose
// clock is wrong cannot shorten it, and a release that comes late does not lengthen it.

// Keep has the master keep the lock that value holds for d from now: 1 kept, 0 the key is
// absent, -1 another value is there.
func Keep(key string, q Queue, value string, d time.Duration) *Command {
	return compose(Command{Op: OpCommit, Script: ScriptKeep}, []string{key, q.Kept()}, []string{value, atLeastMillis(d)})
}

// Kept returns the key that holds the value for which the lock is kept.
func (q Queue) Kept() string { return besideQueue(q.Order, q.Marker, "kept:") }

// KeepArg is the argument of Keeping.
const KeepArg = "keep"

// Keeping returns the release for a lock that may be kept. Where Keep has run, and its time is not
// over, the release only leaves the queue, has the lock end then, and changes its value: the
// lock has no holder. Elsewhere the release deletes the lock.
func (c *Command) Keeping() *Command { return c.keep(KeepArg) }

// KeepingNothing returns the release for a value that came to nothing, although some masters
// may keep the lock for it.
func (c *Command) KeepingNothing() *Command { return c.keep(none) }

func (c *Command) keep(how string) *Command {
	kept := *c
	kept.Args = append(make([]string, 0, 3), c.Args...)
	if len(kept.Args) == 1 {
		kept.Args = append(kept.Args, none)
	}
	kept.Args = append(kept.Args, how)
	return &kept
}

// MayKeep reports whether the command is a release for a lock that may be kept. It is
// never sent together with others.
func (c *Command) MayKeep() bool { return c.Script == ScriptRelease && len(c.Args) > 2 }

// Left asks for how long a key lasts.
func Left(key string) *Command { return &Command{Op: OpRead, Name: "PTTL", Keys: []string{key}} }

// LeftOf reads the answer to Left: zero if the key is missing, negative if it has no end.
func LeftOf(r Reply) (left time.Duration, ok bool) {
	ms, ok := r.Value.(int64)
	if ms == -2 {
		ms = 0
	}
	return time.Duration(ms) * time.Millisecond, ok && r.Err == nil
}

// atLeastMillis is millis, rounded up.
func atLeastMillis(d time.Duration) string {
	return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10)
}
