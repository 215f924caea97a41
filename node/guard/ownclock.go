package guard

import (
	"math"
	"slices"
)

// This file is how fast our own clock runs beside those of most masters: leases end earlier by a slow one.

// read notes what the guard of a master knows of its clock, and how fast that clock runs at
// least. It reports whether our own clock turns out to be slower than it seemed: then
// leases end earlier, and their timers must be set anew.
//
// A quarter of the drift factor f counts as nothing. Every lease gives up f of its TTL, so by
// clocks that run 1+f/4 times as fast as ours it ends at (1-f)(1+f/4) < 1-3f/4 of the TTL. Three
// quarters of f are left for how far the masters' clocks differ from each other: a master whose
// clock gains f on ours is kept out (S47).
func (g *Group) read(s *standing, b bounds, atLeast float64) (slower bool) {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.doubt != s.clock.doubt {
		g.raiseDoubts() // it may now be known which clock went back: this one, or our own
	}
	s.clock, s.atLeast = b, atLeast
	before, fast := g.AtLeast(), g.majority()
	if fast <= 1+b.factor/4 {
		fast = 1
	}
	g.least.Store(math.Float64bits(fast))
	if before > 1+b.factor != (fast > 1+b.factor) {
		g.raiseDoubts()
	}
	return fast > before
}

// majority is how fast every clock of some quorum of the masters runs at least, or 1 if that is
// less. The mutex is held.
func (g *Group) majority() float64 {
	need := g.need()
	if len(g.members) < need {
		return 1
	}
	var few [16]float64
	rates := few[:0]
	for _, m := range g.members {
		rates = append(rates, m.atLeast)
	}
	slices.Sort(rates)
	return max(1, rates[len(rates)-need])
}

// AtLeast is how many seconds pass by the clocks of most masters in one second of ours, at
// least; 1 if that is less. More than 1 means that our own clock is slow. The option AtLeast has
// nothing to do with it.
func (g *Group) AtLeast() float64 {
	if g == nil {
		return 1
	}
	if bits := g.least.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// measure notes how fast a master's clock runs at most, in its seconds for one of ours. If our own
// clock is slow, it is slow beside that of each master, since no two clocks are wrong at once. So the
// lowest rate counts; zero: that master was read once. borne is the rate that the drift allowance of every
// lease covers.
//
// Invariant: it never rises. The timers of leases are not set anew, and their holders would not be told
// that they end earlier (S80).
func (g *Group) measure(atMost, borne float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := math.Inf(1)
	if atMost > 0 {
		most = max(1, atMost/borne)
	}
	if known := math.Float64frombits(g.most.Load()); known > 0 {
		most = min(most, known)
	}
	g.most.Store(math.Float64bits(most))
	if most <= nearly {
		g.closing.Do(func() { close(g.nearlyKnown) })
	}
}

// nearly is how precisely the rate of our own clock is known when Dial returns.
const nearly = 1.05

// Measured returns a channel that is closed when the rate of our own clock is nearly
// known. It stays open where clocks are not watched.
func (g *Group) Measured() <-chan struct{} { return g.nearlyKnown }

// measured reports whether the rate of our own clock is known, not only nearly.
func (g *Group) measured() bool { return g == nil || math.Float64frombits(g.most.Load()) == 1 }

// Pace is how many seconds leases assume to pass by the clocks of most masters in one second of
// ours. It is AtLeast when the rate of our own clock is known. A client that is new does not know
// it yet, and assumes the highest rate that its readings leave open: its first lease is shorter
// for that reason, until it is renewed (S60).
func (g *Group) Pace() float64 {
	if g == nil {
		return 1
	}
	if bits := g.most.Load(); bits != 0 {
		return max(math.Float64frombits(bits), g.AtLeast())
	}
	return g.AtLeast()
}
