package guard

import (
	"math"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
)

// bounds is where a master's clock is, as far as a client knows: bounds of how far it is ahead
// of ours, which every reading narrows and which time widens by the drift factor. A reading
// of the master's TIME was taken at some instant between the send of the question and
// the arrival of the answer, so
//
//	TIME - received <= ahead <= TIME - sent
//
// and the clock was certainly set forward by how far the left side of a new reading is
// above the right side of all readings before. Delay, load and pauses only lower the
// left side and raise the right one. So they are never taken for a step, and a slow
// reading hides nothing for long: the next quick one is compared with all before it.
//
// It is a state machine without I/O. The zero bounds knows nothing.
type bounds struct {
	factor    float64
	longest   time.Duration // for how long it is out after a step: the longest hold of any client plus HeardWithin; see Guard.offsets
	tolerance time.Duration
	unsettled time.Duration // for how long it is in doubt after it was set back

	known   bool
	at      time.Duration // when the last reading came
	seen    time.Duration // when the last look was sent
	ceiling time.Duration // at the instant at, the clock was at most so far ahead
	capped  time.Duration // when the question was sent by whose answer the ceiling is so low
	floor   time.Duration // and at least so far
	stood   time.Duration // and at least so far if it was not set back while we did not look (L72)
	out     time.Duration // until then the master does not vote, since the clock was set forward
	found   time.Duration // when that was found
	by      time.Duration // how far it was certainly set
	from    time.Duration // and since when it was set, at the earliest
	was     time.Duration // before it was at most so far ahead, counted to when that was found
	most    time.Duration // by its last reading it was set at most so far since those before
	doubt   time.Duration // until then the master does not vote, since the clock was set back
	back    time.Duration // how far it was set back then
	placed  time.Time     // since when it has been where it is, by itself and as far as we have seen (S74)

	last    time.Time     // its last reading
	lastWas time.Duration // when it read that for the first time
}

// reading is the master's TIME, read at some instant from sent to came on our steady
// clock.
type reading struct {
	node       time.Time
	sent, came time.Duration
}

// taken reports whether there is a reading.
func (r reading) taken() bool { return !r.node.IsZero() }

func (r reading) atLeast() time.Duration { return time.Duration(r.node.UnixNano()) - r.came }
func (r reading) atMost() time.Duration  { return time.Duration(r.node.UnixNano()) - r.sent }

// drift is how far the bounds widen over a time, in either direction: readings may be
// judged in another order than they were made.
func (b *bounds) drift(passed time.Duration) time.Duration {
	return drift.Drift(max(passed, -passed), b.longest, b.factor)
}

// ahead returns how far a clock that read node, at some instant until now, has certainly
// been set forward since earlier readings, or zero if that is within the tolerance.
// A time without the instant of its question may be late, so it does not tell whether
// the clock was set back.
func (b *bounds) ahead(node time.Time, now time.Duration) time.Duration {
	if !b.known {
		return 0
	}
	forward := time.Duration(node.UnixNano()) - now - (b.ceiling + b.drift(now-b.at))
	if forward <= b.tolerance {
		return 0
	}
	return forward
}

// behind returns how far the clock has certainly been set back since earlier readings,
// or zero if that is within the tolerance.
func (b *bounds) behind(r reading) time.Duration {
	if !b.known {
		return 0
	}
	back := b.stood - b.drift(r.came-b.at) - (r.atMost() + b.drift(r.came-r.sent))
	if back <= b.tolerance {
		return 0
	}
	return back
}

// unsettled is for how long the votes of a master do not count after its clock was set back,
// unless the Config says otherwise. Keys that it stores meanwhile end early when its clock comes
// forward again. Every client that counts votes of this master looks at it within HeardWithin.
// So after twice that all of them have seen where the clock is now, and will see it come forward.
const unsettled = 2 * HeardWithin

// read takes a reading and returns how far the clock has certainly been set forward, or
// zero. After a step the comparison starts anew.
func (b *bounds) read(r reading) (forward time.Duration) {
	forward = b.ahead(r.node, r.came)
	back := b.behind(r)
	if back > 0 {
		b.doubt, b.back, b.placed = r.came+b.unsettled, back, r.node
	}
	if forward > 0 {
		b.out, b.placed = r.came+b.longest, r.node
		b.found, b.by, b.from, b.was = r.came, forward, b.capped, r.atLeast()-forward
	}
	at := max(b.at, r.came)
	within, wider := b.drift(at-r.sent), b.drift(at-b.at)
	atLeast, atMost := r.atLeast()-within, r.atMost()+within // at the instant at
	b.most = atMost - (b.floor - wider)
	switch {
	case forward > 0:
		// What a slow reading leaves open may be one more step, and is judged like one.
		b.ceiling, b.capped, b.floor, b.stood = min(atMost, atLeast+sharp), r.sent, atLeast, atLeast
	case !b.known || back > 0:
		b.ceiling, b.capped, b.floor, b.stood = atMost, r.sent, atLeast, atLeast
	default:
		if b.ceiling += wider; atMost <= b.ceiling {
			b.ceiling, b.capped = atMost, r.sent
		}
		// A clock that was set back a little has a lower floor from now on. If it is set
		// forward again, that counts as a step.
		b.floor = min(max(b.floor-wider, atLeast), b.ceiling)
		b.stood = min(max(b.stood-wider, atLeast), b.ceiling)
	}
	b.known, b.at = true, at
	if !r.node.Equal(b.last) {
		b.last, b.lastWas = r.node, r.came
	}
	return forward
}

// stayed reports whether a look since the step of another clock was found shows that this one was not
// set as far at the same time: so our own clock did not stand still instead (L93). An answer that is too
// late to show that does not count, unless none has come in time for as long as patience: the step may be
// one of that clock alone, and then it must be told of (S72).
func (b *bounds) stayed(step *bounds, now, patience time.Duration) bool {
	return b.seen > step.found && b.found <= step.from && (b.most < step.by || now >= step.found+patience)
}

// standsFor is how long a clock must have shown the same microsecond to stand still.
// Some clocks go in steps of 16 ms.
const standsFor = 100 * time.Millisecond

// still reports whether the reading shows a clock that stands still.
func (b *bounds) still(r reading) bool {
	return r.node.Equal(b.last) && r.sent-b.lastWas >= standsFor
}

// pace bounds from below how fast a master's clock runs, in its seconds for one of ours, over
// one to two windows. Delay only lowers the bound.
type pace struct {
	window       time.Duration
	older, newer reading
}

// read takes a reading, and returns how fast the clock runs at least.
func (p *pace) read(r reading) (atLeast float64) {
	if p.older.node.IsZero() {
		p.older, p.newer = r, r
		return 0
	}
	if passed := r.came - p.older.sent; passed > 0 {
		atLeast = float64(r.node.Sub(p.older.node)) / float64(passed)
	}
	if r.came-p.newer.came >= p.window {
		p.older, p.newer = p.newer, r
	}
	return atLeast
}

// limit bounds from above how fast a master's clock runs, in its seconds for one of ours. Each
// reading is compared with the first one, so the bound gets better with time. Delay raises it.
type limit struct {
	first  reading
	atMost float64 // zero: not known
}

// read takes a reading that was sent after the first one had come.
func (l *limit) read(r reading) {
	switch passed := r.sent - l.first.came; {
	case l.first.node.IsZero():
		l.first = r
	case passed > 0:
		if fast := float64(r.node.Sub(l.first.node)) / float64(passed); l.atMost == 0 || fast < l.atMost {
			l.atMost = max(fast, math.SmallestNonzeroFloat64)
		}
	}
}

// steady is our own monotonic clock, which cannot be set. A lease is counted by the larger of
// the monotonic and the wall difference, which ends it too early rather than too late. A
// quarantine must err to the other side: our own wall clock, set forward, would end it too
// early. In a suspend the monotonic clock stands still and the quarantine gets longer, which is
// safe.
type steady struct {
	clock clock.Clock
	watch *drift.Stopwatch
}

func newSteady(c clock.Clock) steady { return steady{c, drift.NewStopwatch(c)} }

// now is what the monotonic clock says.
func (s steady) now() time.Duration { return s.watch.Now().Monotonic() }
