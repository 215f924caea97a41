package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// This file is when a waiter asks again if no message tells it to.

// pause returns when to ask again if nothing happens, depending on how the last ask
// ended. The mutex is held.
func (w *waiter) pause() time.Duration {
	c := w.lock.client
	interval := c.opt.retryInterval
	if w.lastFail == ErrNoQuorum {
		// Masters that are too slow to answer in time must not be kept slow by our
		// questions, so there are fewer and fewer of them.
		w.misses++
		return c.jitter(interval * time.Duration(min(w.misses, maxMisses)))
	}
	w.misses = 0
	w.hurries = w.reconsider(false)
	if w.given != 0 || w.turns != 0 || w.hurries {
		pause := w.minorityPause()
		w.splits++
		return pause
	}
	w.before, w.splits = w.splits, 0
	held, foreign := w.standing()
	if w.lock.opt.polls {
		w.looks++
		poll := w.lock.opt.poll
		return min(c.jitter(min(poll.max, poll.min<<min(w.looks-1, 20))), held)
	}
	if w.polls || foreign {
		// Another library's client sends no message when it releases.
		return min(c.jitter(interval), held)
	}
	pause := min(c.jitter(w.refresh()), held)
	if w.queue.all.hearing.none {
		pause = min(pause, deafAfter) // for the next look
	}
	return pause
}

// reconsider lets the claim decide how to wait, if it can, and reports whether to ask
// again soon. The mutex is held.
func (w *waiter) reconsider(called bool) (soon bool) {
	c, ok := w.claim.(reconsidering)
	return ok && c.reconsider(w.ballots, called)
}

// maxMisses bounds how much longer the pauses get while no quorum answers.
const maxMisses = 10

// standing reads from the answers how long it takes until enough keys have expired
// that a quorum may be ours, or all that are known of, and whether a client of another
// library holds the lock. If the number of masters is even, less than a quorum have
// answered when the ask is decided. The mutex is held.
func (w *waiter) standing() (held time.Duration, foreign bool) {
	var few [16]time.Duration
	left := few[:0]
	for _, b := range w.ballots {
		fields, _ := b.Reply.Value.([]any)
		if b.Vote != quorum.Refused || len(fields) < 2 {
			continue
		}
		if ms, ok := fields[0].(int64); ok && ms >= 0 {
			left = append(left, time.Duration(ms+1)*time.Millisecond)
		}
		foreign = foreign || fields[1] == int64(1)
	}
	if len(left) == 0 {
		return w.refresh(), foreign
	}
	slices.Sort(left)
	need := w.lock.client.members.Need() - w.given.Len()
	return left[min(need, len(left))-1], foreign
}

// minorityPause is how long a waiter keeps a minority before it asks again, but no
// longer than until the other keys end. The mutex is held.
func (w *waiter) minorityPause() time.Duration {
	held, _ := w.standing()
	held -= w.lock.client.watch.Since(w.sent) - w.trip // that was when the ask was decided
	return min(w.lock.client.jitter(w.splitPause()), max(0, held))
}

// splitPause is how long a split vote may last: about a round trip, in which the asks
// of the others reach the masters. It grows, since the lowest ticket keeps a minority
// for as long as another client holds the rest. The mutex is held.
func (w *waiter) splitPause() time.Duration {
	pause := max(w.trip, shortestTrip) << min(w.splits, 16)
	return min(pause, w.refresh())
}

// shortestTrip keeps clients that are close to the masters from asking all the time.
const shortestTrip = 250 * time.Microsecond

// refresh is how often a waiter asks again if nothing happens: twice before its
// registration ends.
func (w *waiter) refresh() time.Duration { return w.lock.opt.ttl / 3 }
