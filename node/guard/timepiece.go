package guard

import "time"

// timepiece is what a client knows of one master's clock, and whether that is enough for
// the master to vote. Readings, and what the other clients have written, go in; how far
// the clock was certainly set comes out. It is a state machine without I/O, and never asks
// what time it is.
//
//	event                             | stranger | guest    | away      | familiar
//	look, after a gap of HeardWithin  | -        | stranger | -         | away
//	compared, vaguely                 | guest    | -        | -         |
//	compared well, or found to be set | familiar | familiar | familiar  |
//	looks for a hold, and unsettled   | familiar | familiar | familiar  |
//
// A clock that is not familiar may have been set before we came, or while we were away, and
// so be in step with all that we have read ourselves.
type timepiece struct {
	bounds
	paces [2]pace
	pace  float64 // how fast it ran at least, by the last look
	limit limit

	state acquaintance
	since time.Duration // the first look since which there was no gap
	seen  time.Duration // when the last look was sent

	said   offsets       // by the other clients, as of the last look
	saidAt time.Time     // what the clock read then
	heard  time.Duration // and when that was
}

// acquaintance is how well we know a clock.
type acquaintance uint8

const (
	stranger acquaintance = iota // its past is unknown
	guest                        // it was compared, but not well
	away                         // known from before, but not looked at for a while
	familiar                     // it would have been seen if it was set since any lease began that may be left
)

// look takes a reading that came with what the other clients have written.
func (t *timepiece) look(r reading, said offsets) (forward time.Duration) {
	if gap := r.sent-t.seen > HeardWithin; gap || !t.known {
		t.since = r.came
		switch t.state {
		case guest: // it was not compared well before the gap, so it is compared anew (S48)
			t.state = stranger
		case familiar:
			t.state = away
		}
	}
	t.seen = max(t.seen, r.sent)
	t.said, t.saidAt, t.heard = said, r.node, r.came
	if r.came-t.since >= max(t.longest-HeardWithin, t.unsettled) {
		t.state = familiar // only by a look, which writes where the clock is now
	}
	return t.read(r)
}

// overlooked reports whether the last look is too long ago for a vote to count that was
// asked for at the instant sent: the clock may have been set, and set again, since.
func (t *timepiece) overlooked(sent time.Duration) bool {
	return sent-t.seen > HeardWithin
}

// against returns how far the clock was certainly set since it was between low and high,
// which is as of now; backward if that is negative.
func (t *timepiece) against(now, low, high time.Duration) (moved time.Duration) {
	passed := t.drift(now - t.at)
	if forward := t.floor - passed - high; forward > t.tolerance {
		return forward
	}
	return -max(0, low-t.ceiling-passed-t.tolerance)
}

// recall takes bounds of the clock, as of now, from the offsets that other clients have
// written. It returns how far the clock was certainly set since.
func (t *timepiece) recall(now, low, high time.Duration) (moved time.Duration) {
	switch moved = t.against(now, low, high); {
	case moved > 0:
		t.state, t.out = familiar, now+t.longest
	case moved < 0:
		t.state, t.doubt, t.back = familiar, now+t.unsettled, -moved
	default:
		passed := t.drift(now - t.at)
		t.ceiling = min(t.ceiling+passed, max(high, t.floor-passed))
		t.floor = max(t.floor-passed, min(low, t.ceiling))
		t.at = max(t.at, now)
		t.compared(high - low)
	}
	return moved
}

// compared notes that the clock is where it must be, within its own bounds and the bounds
// that it was compared with; apart is the width of the latter.
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

// fit reports whether the clock can tell something of others: it was not found to be set.
func (b *bounds) fit(now time.Duration) bool {
	return b.doubt <= now && b.out <= now
}

// difference returns by how much one master's clock is ahead of another's now, at least and at
// most.
func difference(a, b *bounds, now time.Duration) (low, high time.Duration) {
	wide := a.drift(now-a.at) + b.drift(now-b.at)
	return a.floor - b.ceiling - wide, a.ceiling - b.floor + wide
}
