package wire

import (
	"strconv"
	"time"
)

// MaxNames is how many locks may be taken as one.
const MaxNames = 1000

// Many names the keys of several locks that are taken as one, all or none.
type Many struct{ keys []string }

// ManyOf returns the keys of the locks of those names, among the keys with the
// given prefix.
func ManyOf(prefix string, names []string) Many {
	keys := make([]string, 3*len(names), 3*len(names)+1)
	for i, name := range names {
		q := QueueOf(prefix, name)
		keys[i], keys[len(names)+i], keys[2*len(names)+i] = prefix+name, q.Order, q.Entries
	}
	return Many{append(keys, MarkerKey(prefix))}
}

// These can be waited for instead of one of several locks, which are counted from 1.
const (
	WaitForFirst = 0  // the first that is lacking
	WaitForEach  = -1 // each, if no waiter comes before us: no other is then given any of them
)

// Take takes all locks, for OpAcquire; for OpAsk it waits, with the given ticket. If
// it is to wait for a named one, it takes none. With a proposal, which may be zero for
// none, it raises the fencing counters of all. The reply is OK or the counter, or the
// remaining TTL in milliseconds of the lock that it lacks, whether another library's
// client holds that, the highest counter, which lock it is, from 1, and its holder.
func (m Many) Take(op Op, value string, ttl time.Duration, ticket int64, proposal uint64, waitFor int) *Command {
	return m.command(op, ScriptMultiAsk, value, millis(ttl), orNone(ticket), orNoToken(proposal), strconv.Itoa(waitFor))
}

// Raise is FencedRaise for all locks.
func (m Many) Raise(value string, token uint64) *Command {
	return m.command(OpCommit, ScriptMultiRaise, value, whole(token))
}

// Extend is Extend for all locks, with a fencing token or zero.
func (m Many) Extend(value string, ttl time.Duration, token uint64) *Command {
	return m.command(OpExtend, ScriptMultiExtend, value, millis(ttl), orNoToken(token))
}

// Repair is Repair for each lock that no other client holds.
func (m Many) Repair(value string, ttl time.Duration, token uint64) *Command {
	return m.command(OpRepair, ScriptMultiRepair, value, millis(ttl), orNoToken(token))
}

// Release is Release for all locks.
func (m Many) Release(value string, ttl time.Duration, token uint64) *Command {
	cmd := m.command(OpRelease, ScriptMultiRelease, value, orNoToken(token))
	cmd.Keep = ttl
	return cmd
}

func (m Many) command(op Op, s *Script, args ...string) *Command {
	return &Command{Op: op, Script: s, Keys: m.keys, Args: args}
}

func orNoToken(token uint64) string {
	if token == 0 {
		return none
	}
	return whole(token)
}
