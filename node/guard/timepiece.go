package guard

import (
	"math"
	"time"
)

// timepiece is what a client knows of one master's clock: its bounds, and how well we know it.
// Readings, and what the other clients have written, go in; how far the clock was certainly set
// comes out. It is a state machine without I/O, and never asks what time it is: all instants are
// given, on our steady clock.
//
//	event                              | stranger | guest    | away      | familiar
//	looked at, after a gap             | -        | stranger | -         | away
//	compared, vaguely                  | guest    | -        | -         | -
//	compared well, or found to be set  | familiar | familiar | familiar  | -
//	looked at for a hold without a gap | familiar | familiar | familiar  | -
//
// A gap is more than HeardWithin without a look. A hold is the longest restart guard, and here
// no less than unsettled.
//
// The master of a familiar clock may vote. Any other clock is compared first (compareClock): it
// may have been set before we came, or while we were away, and all our own readings would agree
// with it.
type timepiece struct {
	bounds
	paces   [2]pace // over seconds, and over a lease
	atLeast float64 // how fast it ran at least, by the last look
	limit   limit   // how fast it runs at most

	state acquaintance
	since time.Duration // the first look since which there was no gap

	said   history       // by the other clients, as of the last look
	saidAt time.Time     // what the clock read then
	heard  time.Duration // and when that was
}

// acquaintance is how well we know a clock.
type acquaintance uint8

const (
	stranger acquaintance = iota // its past is unknown
	guest                        // it was compared, but not well
	away                         // known from before, but not looked at for a while
	familiar                     // we would know if it was set since the oldest lease that may be left began
)

// look takes a reading, and what the other clients have written, which came with it. It returns
// how far the clock has certainly been set forward.
func (t *timepiece) look(r reading, said history) (forward time.Duration) {
	if gap := r.sent-t.seen > HeardWithin; gap || !t.known {
		t.since, t.placed = r.came, r.node
		t.floor = longAgo // it may have been set back meanwhile, and a slow reading does not show that (L72)
		switch t.state {
		case guest: // it was not compared well before the gap, so it is compared anew (S48)
			t.state = stranger
		case familiar:
			t.state = away
		}
	}
	t.seen = max(t.seen, r.sent)
	t.said, t.saidAt, t.heard = said, r.node, r.came
	if r.came-t.since >= t.unfamiliar() {
		t.state = familiar // here and not by a vote: a look also writes where the clock is now (S71)
	}
	return t.read(r)
}

// unfamiliar is for how long a clock must be looked at to be familiar, if nothing else makes it so.
func (t *timepiece) unfamiliar() time.Duration { return max(t.longest-HeardWithin, t.unsettled) }

// overlooked reports whether the last look is too long ago for a vote that was asked for at the
// instant sent: the clock may have been set since, and set again.
func (t *timepiece) overlooked(sent time.Duration) bool {
	return sent-t.seen > HeardWithin
}

// against compares the clock with low and high, between which it must be now unless it was set.
// It returns how far it was certainly set: forward, or backward if that is negative.
func (t *timepiece) against(now, low, high time.Duration) (moved time.Duration) {
	within := t.drift(now - t.at)
	if forward := t.floor - within - high; forward > t.tolerance {
		return forward
	}
	return -max(0, low-t.ceiling-within-t.tolerance)
}

// recall takes the bounds, as of now, that follow from what other clients have written. It
// returns what against does.
func (t *timepiece) recall(now, low, high time.Duration) (moved time.Duration) {
	switch moved = t.against(now, low, high); {
	case moved > 0:
		// What others have written does not depend on our clock: whether it stood still does not matter (L93).
		t.state, t.out, t.found, t.by, t.from, t.was = familiar, now+t.longest, now, math.MaxInt64, now, high
	case moved < 0:
		t.state, t.doubt, t.back = familiar, now+t.unsettled, -moved
	default:
		within := t.drift(now - t.at)
		t.ceiling = min(t.ceiling+within, max(high, t.floor-within))
		t.floor = max(t.floor-within, min(low, t.ceiling))
		t.stood = max(t.stood-within, t.floor)
		t.at = max(t.at, now)
		t.compared(high - low)
	}
	return moved
}

// compared notes that the clock is where others say that it must be. It is familiar only if its
// own bounds are narrow, and so are those of the others, which are apart wide.
func (t *timepiece) compared(apart time.Duration) {
	switch {
	case t.ceiling-t.floor <= sharp && apart <= 2*sharp:
		t.state = familiar
	case t.state == stranger:
		t.state = guest
	}
}

// sharp is how wide bounds may be that need not be compared again.
const sharp = 20 * time.Millisecond

// fit reports whether other clocks may be compared with this one: it was not found to be set.
func (b *bounds) fit(now time.Duration) bool {
	return b.doubt <= now && b.out <= now
}

// difference returns by how much one master's clock is ahead of another's now, at least and at
// most.
func difference(a, b *bounds, now time.Duration) (low, high time.Duration) {
	wide := a.drift(now-a.at) + b.drift(now-b.at)
	return a.floor - b.ceiling - wide, a.ceiling - b.floor + wide
}
