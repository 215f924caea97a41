package world

import (
	"math/rand/v2"
	"time"
)

// Dice is the dice of one component. Every component has its own, so that a
// fault or an action that is taken out of a schedule does not change what the
// others throw.
type Dice struct{ pcg rand.PCG }

func NewDice(seed uint64, component string, parts ...int) *Dice {
	h := uint64(HashOffset)
	for i := range len(component) {
		h = (h ^ uint64(component[i])) * HashPrime
	}
	for _, p := range parts {
		h = (h ^ uint64(p+1)) * HashPrime
	}
	s := &Dice{}
	s.pcg.Seed(seed, h)
	return s
}

func (s *Dice) Bits() uint64 { return s.pcg.Uint64() }

// Below returns a number from 0 to n-1, or 0 if n is not positive.
func (s *Dice) Below(n int) int {
	if n <= 0 {
		return 0
	}
	return int(s.Bits() >> 1 % uint64(n))
}

// Chance is true in the given share of cases, in thousandths.
func (s *Dice) Chance(thousandths int) bool { return s.Below(1000) < thousandths }

// Between returns a duration from lo to hi.
func (s *Dice) Between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(s.Bits()>>1%uint64(hi-lo))
}

// Spread returns a duration from lo to hi of any order of magnitude: short ones
// are as likely as long ones.
func (s *Dice) Spread(lo, hi time.Duration) time.Duration {
	doublings := 0
	for d := lo; d < hi; d *= 2 {
		doublings++
	}
	d := lo << s.Below(doublings+1)
	return min(hi, s.Between(d, 2*d))
}
