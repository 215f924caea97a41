package node

import (
	"strconv"
	"time"
)

// Permits names the keys of a semaphore. Its permits are slots, numbered from 0,
// which every command names in decimal with commas between them.
type Permits struct{ keys []string }

// PermitsOf returns the keys of the semaphore of that name, among the keys with the
// given prefix.
func PermitsOf(prefix, name string) Permits {
	key := func(what string) string { return prefix + "redlock:" + what + ":" + name }
	return Permits{[]string{
		key("slots"), key("permitqueue"), key("permitwait"), MarkerKey(prefix), key("owners"), key("held"), key("permits"),
	}}
}

// Take takes n of total permits, the first that are free from start on, for
// OpAcquire; for OpAsk it waits for them with the given ticket. The reply is the
// slots, and those that are free; or in how many milliseconds there will be enough,
// 0, and the slots that are free. It is an error with the code PERMITS where the
// semaphore has another number of permits.
func (p Permits) Take(op Op, value string, ttl time.Duration, ticket int64, total, n, start int) *Command {
	return p.command(op, ScriptPermit, value, millis(ttl), orNone(ticket), strconv.Itoa(total), strconv.Itoa(n), strconv.Itoa(start))
}

// Move takes just these slots and gives back all others. The reply is the slots,
// or nil where somebody else has one of them.
func (p Permits) Move(value string, ttl time.Duration, slots string, total int) *Command {
	return p.command(OpCommit, ScriptPermitMove, value, millis(ttl), slots, strconv.Itoa(total))
}

// Extend is Extend for a permit. What the value has beside these slots is given
// back.
func (p Permits) Extend(value string, ttl time.Duration, slots string, total int) *Command {
	return p.command(OpExtend, ScriptPermitExtend, value, millis(ttl), slots, strconv.Itoa(total))
}

// Repair is Repair for a permit: Move for a lease that is held.
func (p Permits) Repair(value string, ttl time.Duration, slots string, total int) *Command {
	return p.command(OpRepair, ScriptPermitMove, value, millis(ttl), slots, strconv.Itoa(total))
}

// Release is Release for a permit.
func (p Permits) Release(value string, ttl time.Duration) *Command {
	cmd := p.command(OpRelease, ScriptPermitRelease, value)
	cmd.Keep = ttl
	return cmd
}

// Resize changes how many permits there are, where it is as many as were expected.
// The reply is 1, or an error with the code PERMITS.
func (p Permits) Resize(from, to int) *Command {
	return p.command(OpCommit, ScriptPermitResize, strconv.Itoa(from), strconv.Itoa(to))
}

func (p Permits) command(op Op, s *Script, args ...string) *Command {
	return argue(Command{Op: op, Script: s, Keys: p.keys}, args...)
}
