package node

import (
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
)

// skew compares a master's clock with ours. A lease is hurt by how far the master's
// clock errs while the lease lasts. So readings are compared over one to two windows:
// long enough to see a clock that stands still or runs at twice the rate, short enough
// that honest drift never adds up to a step.
type skew struct {
	window    time.Duration
	tolerance time.Duration
	older     reading
	newer     reading
}

// reading is the master's TIME and when it was taken on our steady clock: at
// some instant of the took before at.
type reading struct {
	node time.Time
	at   time.Duration
	took time.Duration
}

// step takes the next reading and returns how far the master's clock is ahead of (or,
// negative, behind) ours, beyond everything that delay and permitted drift explain, or
// zero. After a step the comparison starts anew.
func (p *skew) step(r reading) time.Duration {
	if p.older.node.IsZero() {
		p.older, p.newer = r, r
		return 0
	}
	off := p.off(p.older, r)
	switch {
	case off != 0:
		p.older, p.newer = r, r
	case r.at-p.newer.at >= p.window:
		p.older, p.newer = p.newer, r
	}
	return off
}

// ahead reports whether a clock that read node, at some instant until now, had left
// what ours allows for. Whether it is behind cannot be told: the reading may be late.
func (p *skew) ahead(node time.Time, now time.Duration) bool {
	if p.older.node.IsZero() {
		return false
	}
	atMost := now - p.older.at + p.older.took
	return node.Sub(p.older.node) > atMost+p.slack(atMost)
}

// slack is what is allowed beyond the time that passed. Rates that agree to the drift
// factor are within what every lease allows.
func (p *skew) slack(passed time.Duration) time.Duration {
	return p.tolerance + time.Duration(drift.DefaultFactor*float64(min(passed, 2*p.window)))
}

// off returns by how much the master's clock left what ours allows from a to b.
func (p *skew) off(a, b reading) time.Duration {
	passed := b.node.Sub(a.node)
	atLeast := b.at - b.took - a.at
	atMost := b.at - a.at + a.took
	slack := p.slack(atMost)
	switch {
	case passed > atMost+slack:
		return passed - atMost
	case passed < atLeast-slack:
		return passed - atLeast
	}
	return 0
}

// steady is a clock that cannot be set: the monotonic one alone. A lease is counted by
// the larger of the monotonic and the wall difference, which ends it too early rather
// than too late. A quarantine must err to the other side: our own wall clock, set
// forward, would end it too early. In a suspend the monotonic clock stands still and
// the quarantine gets longer, which is safe.
type steady struct {
	clock  clock.Clock
	mono   drift.Monotonic // nil: the monotonic reading travels inside time.Time
	origin time.Time
}

func newSteady(c clock.Clock) steady {
	mono, _ := c.(drift.Monotonic)
	return steady{clock: c, mono: mono, origin: c.Now()}
}

func (s steady) now() time.Duration {
	if s.mono != nil {
		return s.mono.Monotonic()
	}
	return s.clock.Now().Sub(s.origin)
}
