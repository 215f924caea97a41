package waiting

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// forever is longer than any caller waits.
const forever = time.Duration(math.MaxInt64)

// This file says when a waiter asks again if no message has it ask before.

// backoff is how many of a waiter's asks came to what.
type backoff struct {
	rounds int // asks that were sent
	misses int // in a row, without a quorum of answers
	splits int // in a row, with a minority of grants
	before int // what splits was before an ask without grants set it to zero: a late grant goes on from there
}

// pause is when a timer fires: after half of around to around, but no later than atMost.
type pause struct{ around, atMost time.Duration }

// never stops the timer.
var never = pause{around: -1}

const (
	// maxMisses bounds how much longer the pauses get while no quorum answers.
	maxMisses = 10
	// fewMisses is how many asks a waiter that is queued keeps its place for where masters fail: a
	// second in all, or ten retry intervals.
	fewMisses = 4
	// shortestTrip keeps clients that are close to the masters from asking all the time.
	shortestTrip = 250 * time.Microsecond
)

// rest returns when to ask again if nothing happens, depending on how the last ask
// ended.
func (w *Waiter) rest(now drift.Instant) pause {
	a, b, interval := &w.ask, &w.backoff, w.queue.all.RetryInterval
	if w.failed == ErrNoQuorum {
		// Masters that are too slow to answer in time must not be kept slow by our
		// questions, so there are fewer and fewer of them.
		b.misses++
		return pause{interval * time.Duration(min(b.misses, maxMisses)), forever}
	}
	b.misses = 0
	a.soon = w.reconsiders(false)
	if a.soon || a.granted|a.called != 0 {
		p := w.minorityPause(now)
		b.splits++
		return p
	}
	b.before, b.splits = b.splits, 0
	return w.untilFree()
}

// untilFree is when a waiter without a grant asks again: when enough keys have expired, unless it
// polls.
func (w *Waiter) untilFree() pause {
	a, b, interval := &w.ask, &w.backoff, w.queue.all.RetryInterval
	held, foreign := w.standing()
	switch poll := w.lock.Options().Poll; {
	case poll != nil:
		return pause{doubled(poll.Min, b.rounds-1, poll.Max), held}
	case a.polls || foreign: // another library's client sends no message when it releases
		return pause{interval, held}
	case w.queue.all.hearing.none: // look again when the client may turn out to be deaf
		return pause{w.refresh(), min(held, deafAfter)}
	}
	return pause{w.refresh(), held}
}

// minorityPause is how long a waiter keeps a minority before it asks again, but no
// longer than until the other keys end.
func (w *Waiter) minorityPause(now drift.Instant) pause {
	held, _ := w.standing()
	return pause{w.splitPause(), max(0, held-w.ask.decidedFor(now))}
}

// splitPause is how long a split vote may last: about a round trip, in which the asks
// of the others reach the masters. It grows, since the lowest ticket keeps a minority
// for as long as another client holds the rest. A master that hangs makes no trip longer (L80).
func (w *Waiter) splitPause() time.Duration {
	trip := cmp.Or(w.queue.all.trip, w.ask.trip)
	return doubled(max(trip, shortestTrip), w.backoff.splits, w.refresh())
}

// doubled returns d, doubled so many times, or atMost if that is less. The bound is
// shifted, since d might overflow.
func doubled(d time.Duration, times int, atMost time.Duration) time.Duration {
	if d > atMost>>times {
		return atMost
	}
	return d << times
}

// refresh is how often a waiter asks again if nothing happens: twice before its
// registration ends.
func (w *Waiter) refresh() time.Duration { return w.lock.Options().TTL / 3 }

// standing reads from the answers how long it takes until enough keys have expired
// that a quorum may be ours, or all that are known of, and whether a client of another
// library holds the lock. If the number of masters is even, less than a quorum have
// answered when the ask is decided.
func (w *Waiter) standing() (held time.Duration, foreign bool) {
	var few [16]time.Duration
	left := few[:0]
	for _, b := range w.ask.ballots {
		said, ok := wire.RefusalOf(b.Reply)
		if b.Vote != quorum.Refused || !ok {
			continue
		}
		if said.Left >= 0 {
			left = append(left, said.Left+time.Millisecond)
		}
		foreign = foreign || said.Foreign
	}
	if len(left) == 0 {
		return w.refresh(), foreign
	}
	slices.Sort(left)
	need := w.queue.all.Members.Need() - w.ask.granted.Len()
	return left[min(need, len(left))-1], foreign
}

// pace bounds how many asks of a client's waiters are undecided at the same time. The
// asks above the bound are sent in order, each when an earlier one has been decided.
//
// Without a bound, thousands of waiters that ask masters which stood still for a moment
// keep the masters too busy to answer in time. Then no ask finds a quorum, all are
// repeated, and that never ends (L46). So the bound falls with each ask that finds no
// quorum, and rises with each ask that does.
//
// The mutex of the queues guards it.
type pace struct {
	queues *Queues
	open   int  // asks that are not decided
	limit  int  // of these
	line   line // waiters that may not ask yet
	timer  drift.Timer
}

const (
	fewestOpen = 16   // asks: so many never have to wait
	mostOpen   = 1024 // asks
	mostAtOnce = 256  // asks that one callback sends
)

// may reports whether a waiter may ask now. If not, it asks when its turn comes.
func (p *pace) may(w *Waiter) bool {
	if p.open >= p.limit {
		p.line.waiters = append(p.line.waiters, w)
		return false
	}
	p.open++
	return true
}

// decided notes that an ask was decided, and has the next waiters ask.
func (p *pace) decided(answered bool) {
	p.queues.mu.Lock()
	p.open--
	if answered {
		p.limit = min(p.limit+1, mostOpen)
	} else {
		p.limit = max(p.limit/2, fewestOpen)
	}
	p.queues.mu.Unlock()
	p.Fire()
}

// Fire has waiters ask that may, and goes on after a rest if these are too many.
func (p *pace) Fire() {
	n, qs := 0, p.queues
	p.line.goOn(qs, event{kind: paceAllows}, func() bool {
		if n++; n > mostAtOnce && p.open < p.limit {
			qs.Timers.Set(&p.timer, qs.Jitter(qs.RetryInterval), p)
		}
		return n <= mostAtOnce && p.open < p.limit
	})
}
