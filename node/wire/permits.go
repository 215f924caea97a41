package wire

import (
	"strconv"
	"time"
)

const (
	// MaxPermits is how many permits a semaphore may have. The token of a permit has its slot
	// below a multiple of that.
	MaxPermits = 4096
	// MaxAcquire is how many of them one lease may have. The masters need time for each:
	// 4 us, so that they are kept from other clients for 10 ms at most.
	MaxAcquire = 2048
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

// Take takes n of total permits, the first free ones from start on, for OpAcquire; for
// OpAsk it waits for them with the given ticket. The reply is the slots, the free
// slots, the counter, the order of the Resize, and after a Resize all taken slots, if
// any; or in how many milliseconds there will be enough, 0,
// and the free slots. It is an error with the code PERMITS if the semaphore has
// another number of permits. With a proposal the counter of a fenced semaphore rises
// by one, and to proposal at least.
func (p Permits) Take(op Op, value string, ttl time.Duration, ticket int64, total, n, start int, proposal uint64) *Command {
	return p.command(op, ScriptPermit,
		value, millis(ttl), orNone(ticket), strconv.Itoa(total), strconv.Itoa(n), strconv.Itoa(start), orNone(int64(proposal)))
}

// Move takes just these slots and gives back all others, which were given as part of
// total permits, by the Resize of that order. The reply is the slots and the counter,
// which moves as by Take; or nil if another value has one of them, or if there are
// fewer permits by a later Resize.
func (p Permits) Move(value string, ttl time.Duration, slots Slots, total int, order int64, proposal uint64) *Command {
	return p.move(OpCommit, value, ttl, slots, total, order, proposal)
}

// Extend is Extend for a permit. It gives back the other slots of the value, and keeps
// the counter up with that of the token.
func (p Permits) Extend(value string, ttl time.Duration, slots Slots, total int, counter uint64) *Command {
	return p.command(OpExtend, ScriptPermitExtend, value, millis(ttl), string(slots), strconv.Itoa(total), orNone(int64(counter)))
}

// Repair is Repair for a permit: Move for a lease that is held, of however many
// permits there are now.
func (p Permits) Repair(value string, ttl time.Duration, slots Slots, total int, order int64, counter uint64) *Command {
	return p.move(OpRepair, value, ttl, slots, total, order, counter, "held")
}

func (p Permits) move(op Op, value string, ttl time.Duration, slots Slots, total int, order int64, proposal uint64, held ...string) *Command {
	return p.command(op, ScriptPermitMove, append([]string{
		value, millis(ttl), string(slots), strconv.Itoa(total), strconv.FormatInt(order, 10), orNone(int64(proposal)),
	}, held...)...)
}

// Raise raises the counter to that of a token if value has just these slots: 1, or -1
// if it has not.
func (p Permits) Raise(value string, slots Slots, counter uint64) *Command {
	return p.command(OpCommit, ScriptPermitRaise, value, string(slots), whole(counter))
}

// Release is Release for a permit.
func (p Permits) Release(value string, ttl time.Duration) *Command {
	cmd := p.command(OpRelease, ScriptPermitRelease, value)
	cmd.Keep = ttl
	return cmd
}

// Resize changes how many permits there are. The reply is 1, or an error with the code
// PERMITS after a Resize of a higher order.
func (p Permits) Resize(to int, order int64) *Command {
	return p.command(OpCommit, ScriptPermitResize, strconv.Itoa(to), strconv.FormatInt(order, 10))
}

func (p Permits) command(op Op, s *Script, args ...string) *Command {
	return argue(Command{Op: op, Script: s, Keys: p.keys}, args...)
}
