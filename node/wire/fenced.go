package wire

import (
	"strconv"
	"time"
)

// A fenced lock has a counter beside it, from which its fencing tokens come. What
// a token is, and why tokens rise, is the business of package redlock: these are
// the commands.

// Counter returns the key of the lock's fencing counter.
func (q Queue) Counter() string {
	if q.counter != "" {
		return q.counter
	}
	return besideQueue(q.Order, q.Marker, "token:")
}

// besideQueue returns the key of the same lock that has another word in place of
// the queue's.
func besideQueue(queue, marker, word string) string {
	base := marker[:len(marker)-len("marker")]
	return base + word + queue[len(base)+len("queue:"):]
}

// Fenced returns the queue of a fenced lock, which knows the key of its counter.
func (q Queue) Fenced() Queue {
	q.counter = q.Counter()
	return q
}

// FencedAcquire is Acquire that raises the counter by one, and to proposal at least.
// The reply is the counter, or what FencedAsk answers while another client holds the
// lock.
func FencedAcquire(key string, q Queue, value string, ttl time.Duration, proposal uint64) *Command {
	return compose(Command{Op: OpAcquire, Script: ScriptFencedAcquire},
		[]string{key, q.Counter()}, []string{value, millis(ttl), whole(proposal)})
}

// FencedAsk is Ask that raises the counter with every grant. The reply is the counter,
// or what Ask answers and the counter.
func FencedAsk(key string, q Queue, value string, ticket int64, stay time.Duration, proposal uint64) *Command {
	return newAsk(key, q, value, ticket, stay, whole(proposal))
}

// FencedFairAsk is FairAsk that raises the counter with a grant. The reply is the
// counter, or what FairAsk answers.
func FencedFairAsk(key string, q Queue, value string, ticket int64, ttl time.Duration, proposal uint64) *Command {
	return newFairAsk(key, q, value, ticket, ttl, whole(proposal))
}

// FencedRaise raises the counter to token if value holds the lock: 1 raised, 0 it was
// there already, -1 the lock is not held by value.
func FencedRaise(key string, q Queue, value string, token uint64) *Command {
	return compose(Command{Op: OpCommit, Script: ScriptFencedRaise}, []string{key, q.Counter()}, []string{value, whole(token)})
}

// FencedExtend is Extend that keeps the counter up with the token.
func FencedExtend(key string, q Queue, value string, ttl time.Duration, token uint64) *Command {
	return compose(Command{Op: OpExtend, Script: ScriptFencedExtend},
		[]string{key, q.Counter()}, []string{value, millis(ttl), whole(token)})
}

// FencedRepair is Repair that keeps the counter up with the token.
func FencedRepair(key string, q Queue, value string, ttl time.Duration, token uint64) *Command {
	return compose(Command{Op: OpRepair, Script: ScriptFencedRepair},
		[]string{key, q.Counter()}, []string{value, millis(ttl), whole(token)})
}

// FencedRelease is Release that keeps the counter up with the token.
func FencedRelease(key string, q Queue, value string, ttl time.Duration, token uint64) *Command {
	cmd := Release(key, q, value, ttl)
	cmd.Args = append(cmd.Args, whole(token))
	return cmd
}

// HandTo returns a FencedRelease that hands the lock to the waiter of that id, whatever its place in
// the queue. Where that waiter is not there, the first is handed the lock, as by any release.
func (c *Command) HandTo(waiter string) *Command {
	handed := *c
	handed.Script = ScriptTransfer
	handed.Args = append(append(make([]string, 0, 3), c.Args...), waiter)
	return &handed
}

func whole(n uint64) string { return strconv.FormatUint(n, 10) }
