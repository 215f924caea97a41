package node

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// The clock half of the guard (PROTOCOLS (j)). A master whose clock was certainly set
// forward may not grant until every lease from before has ended. One whose clock was set
// back, or runs slowly, only keeps keys for longer; but it may come forward again before
// the others have seen that it went back. So its votes do not count for a moment (S59).

// steps is what a reading of a master's clock has shown.
type steps struct {
	forward time.Duration // how far it has certainly been set forward; zero: within the tolerance
	still   bool          // it stands still
	kept    bool          // it was compared with ours since we last looked
	slow    bool          // our own clock is slower than it seemed
}

// reason is why the master may not vote, or empty.
func (s steps) reason() string {
	switch {
	case s.forward > 0:
		return fmt.Sprintf("its clock is %v ahead of ours", s.forward)
	case s.still:
		return "its clock stands still"
	}
	return ""
}

// watchClock compares how far the master's clock and our steady clock moved since we
// looked before. So a step of our own wall clock is no step of the master's. If our
// monotonic clock stood still in a suspend, every master seems to have stepped; that
// cannot be told from all clocks having been set, and is treated alike (S28).
func (g *Guard) watchClock(e Evidence, now time.Duration) steps {
	if g.config.ClockTolerance <= 0 || e.Time.IsZero() {
		return steps{}
	}
	first := !g.clocks.known
	if first {
		g.met = now
	}
	r := g.reading(e)
	s := steps{still: g.clocks.still(r), kept: !first}
	s.forward = g.clocks.read(r)
	// Two looks must say so: the first one after a suspend counts what that hid.
	before, atLeast := g.pace, max(g.paces[0].read(r), g.paces[1].read(r))
	g.pace = atLeast
	s.slow = g.group.read(g.standing, g.clocks, min(before, atLeast))
	if s.forward > 0 {
		// It was a step, or ours stood still in a suspend: then it is over.
		for i := range g.paces {
			g.paces[i].older, g.paces[i].newer = r, r
		}
	}
	return s
}

// settles returns for how long the master's votes must not count yet because its clock was
// certainly set back. If those of most masters were, it was not the masters' clocks: ours
// was set or runs fast, and nobody is kept out (L37).
func (g *Guard) settles(now time.Duration) time.Duration {
	if !g.watches() || g.clocks.doubt <= now || g.group.mostWentBack(now) {
		return 0
	}
	return g.clocks.doubt - now
}

// mostWentBack reports whether the clocks of most masters were set back just now. A guard
// without a group has one master.
func (g *Group) mostWentBack(now time.Duration) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	back := 0
	for _, m := range g.members {
		if m.clock.doubt > now {
			back++
		}
	}
	return back >= g.need()
}

// need is how many masters are a quorum. The mutex is held.
func (g *Group) need() int { return max(g.id.Size, len(g.members))/2 + 1 }

// agreement is how far the clocks of masters may differ from each other. That they agree
// is needed only by a client that is new: it does not know since when a clock is as it
// finds it.
const agreement = time.Second

// compareClock compares the master's clock with those of the others, as long as a lease
// may be left from before we read it first. Readings get better, so one comparison is not
// enough. A clock that is wrong may have just been set: it is treated so if it is ahead.
// A quorum of masters that agree knows the time better than our own wall clock; only if
// they do not agree, ours decides, once. It reports false as long as too few masters were
// read to know. After a hold that does not matter any more: we would have seen the clock
// step.
func (g *Guard) compareClock(now time.Duration) bool {
	if !g.clocks.known {
		return true
	}
	if g.hold() > 0 && now-g.met >= g.hold() {
		g.compared = true
		return true
	}
	off, said := g.group.ahead(g.standing, now)
	whose := "those of most masters"
	switch {
	case said == unheard:
		return g.compared
	case said == divided && g.compared:
		return true
	case said == divided:
		off = g.clocks.floor - time.Duration(g.clock.clock.Now().UnixNano()) + now
		whose = "ours"
	}
	g.compared = true
	if off > agreement {
		g.forget(now, now-g.met, fmt.Sprintf("its clock is %v ahead of %s", off, whose))
	}
	return true
}

// read notes what the guard of a master knows of its clock, and how fast that runs at
// least. It reports whether our own clock turns out to be slower than it seemed.
func (g *Group) read(s *standing, b bounds, atLeast float64) (slower bool) {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.doubt != s.clock.doubt {
		g.raiseDoubts() // whose clock went back may have come out
	}
	s.clock, s.pace = b, atLeast
	before, fast := g.Pace(), g.majority()
	g.pace.Store(math.Float64bits(fast))
	if before > 1+b.factor != (fast > 1+b.factor) {
		g.raiseDoubts()
	}
	return fast > max(1+b.factor/4, before)
}

// majority is how fast the clocks of a quorum of the masters run at least, or 1 if that is
// less. The mutex is held.
func (g *Group) majority() float64 {
	need := g.need()
	if len(g.members) < need {
		return 1
	}
	var few [16]float64
	paces := few[:0]
	for _, m := range g.members {
		paces = append(paces, m.pace)
	}
	slices.Sort(paces)
	return max(1, paces[len(paces)-need])
}

// Pace is how much faster than ours the clocks of most masters run at least: how many of
// their seconds pass in one of ours, or 1 if that is less.
func (g *Group) Pace() float64 {
	if g == nil {
		return 1
	}
	if bits := g.pace.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// verdictOfClocks is what the masters of a group say of the clock of one of them.
type verdictOfClocks int

const (
	unheard verdictOfClocks = iota // too few were read to know
	divided                        // no quorum of them agrees
	agreed                         // a quorum agrees, or there are no others
)

// ahead returns how far the clock of a guard's master is certainly ahead of those of a
// quorum of the masters which agree. One master alone is right. As long as those that were
// not read yet may make a quorum with others, it is not known whether one agrees (S45): our
// own clock, which decides then, may be as wrong as that of the one master which agrees with
// it.
func (g *Group) ahead(s *standing, now time.Duration) (time.Duration, verdictOfClocks) {
	if g == nil || g.id.Size < 2 {
		return 0, agreed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	need, read, most := g.id.Size/2+1, 0, 0
	nearest, said := time.Duration(0), divided
	for _, a := range g.members {
		if !a.clock.known {
			continue
		}
		read++
		agreeing := g.agreeing(a, now)
		if most = max(most, agreeing); agreeing < need {
			continue
		}
		if off := s.clock.aheadOf(&a.clock, now); said == divided || off < nearest {
			nearest, said = off, agreed
		}
	}
	if said == divided && most+g.id.Size-read >= need {
		return 0, unheard
	}
	return nearest, said
}

// agreeing returns how many clocks agree with that of a. The mutex is held.
func (g *Group) agreeing(a *standing, now time.Duration) int {
	n := 0
	for _, b := range g.members {
		if b.clock.known && a.clock.aheadOf(&b.clock, now) <= agreement && b.clock.aheadOf(&a.clock, now) <= agreement {
			n++
		}
	}
	return n
}

// aheadOf returns how far one master's clock is certainly ahead of another's.
func (b *bounds) aheadOf(other *bounds, now time.Duration) time.Duration {
	return b.floor - b.drift(now-b.at) - other.lowest - other.drift(now-other.at)
}
