package guard

import "time"

// agreement is how far the clocks of two masters may differ and still agree. Only a client that
// is new, and finds nothing written of a clock, needs clocks that agree: it cannot know for how
// long the clock has been as it finds it.
const agreement = time.Second

// verdictOfClocks is what the masters of a group say of the clock of one of them.
type verdictOfClocks int

const (
	unheard verdictOfClocks = iota // too few were read to know
	divided                        // no quorum of them agrees
	agreed                         // a quorum agrees, or the master is the only one
)

// aheadOfMost returns how far the clock of a guard's master is certainly ahead of the clocks of
// a quorum that agree with each other. The clock of a single master is right. As long as
// masters that were not read may still make such a quorum, the answer is unheard (S45): our own
// clock, which decides where no quorum agrees, may be as wrong as the clock of the one master
// that agrees with it.
func (g *Group) aheadOfMost(s *standing, now time.Duration) (time.Duration, verdictOfClocks) {
	if g == nil {
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
	low, _ := difference(b, other, now)
	return low
}
