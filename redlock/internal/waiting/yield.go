package waiting

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
)

// yields is how a lock is left now and then to callers that do not queue: those of another
// library, and those that poll or only try. A release hands the lock on, so without that it is
// never free for them, and the masters cannot see who was refused.
//
// A client that was handed the lock owes a part of the time for which it held it. When that is
// enough for a pause, the release leaves the lock free for as long (yield.lua). While the client
// sees no holder that did not queue, a pause is 10 ms, all pauses are less than 1 % of the time, and
// it does not matter for which lock the time is owed. Once it sees one, a pause is 250 ms, in which
// each caller of redsync tries at least once, and all pauses of this lock are half of the time. With
// each pause in which it sees none, pauses get rarer by half, and then shorter.
//
// All clients together owe for the whole time for which the lock was handed over, so they need not
// agree.
type yields struct {
	owed  time.Duration // from level 1 on; otherwise see Queues
	level uint          // how often part and pause are doubled
	seen  bool          // a holder that did not queue, since the last pause began
}

// turn is the time for which a waiter has the lock.
type turn struct {
	yields *yields       // of its queue
	since  drift.Instant // when the lock was on its way to it
}

const (
	shortestYield = 10 * time.Millisecond
	longestYield  = 250 * time.Millisecond
	// leastTurn is what short turns count for. Callers that do not queue come too rarely to
	// find the lock free otherwise.
	leastTurn = 5 * time.Millisecond
	// mostLevel is the level at which the part is the whole.
	mostLevel = 7
)

// saw notes a holder that did not queue.
func (y *yields) saw() { y.seen, y.level = true, mostLevel }

// released returns for how long the lock is left to others by a holder that releases it after
// so long. common is what is owed for all locks.
func (y *yields) released(held, ttl time.Duration, common *time.Duration) time.Duration {
	owed := common
	if y.level > 0 {
		owed, held = &y.owed, max(held, leastTurn)
	}
	*owed += held >> (mostLevel - y.level)
	pause := min(shortestYield<<y.level, longestYield, ttl/4)
	if *owed < pause {
		return 0
	}
	*owed = 0
	if !y.seen && y.level > 0 {
		y.level--
	}
	y.seen = false
	return pause
}

// Yield returns for how long a lock is left to callers that do not queue when this value, which
// holds it, is released now. Callers of this client queue meanwhile: they would take the lock from
// those that it is left to, and pass those that wait (L74).
func (qs *Queues) Yield(l Lock, value string) time.Duration {
	d := qs.owes(l, value)
	if d > 0 {
		qs.Expect(l)
	}
	return d
}

func (qs *Queues) owes(l Lock, value string) time.Duration {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	t := qs.known[values.ID(value)].turn
	if t.yields == nil {
		return 0
	}
	return t.yields.released(qs.Watch.Now().Sub(t.since), l.Options().TTL, &qs.owed)
}
