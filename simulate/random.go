package simulate

import (
	"math/rand/v2"
	"time"
)

// stream is the dice of one component. Every component has its own, so that a
// fault or an action that is taken out of a schedule does not change what the
// others throw.
type stream struct{ pcg rand.PCG }

func newStream(seed uint64, component string, parts ...int) *stream {
	h := uint64(hashOffset)
	for i := range len(component) {
		h = (h ^ uint64(component[i])) * hashPrime
	}
	for _, p := range parts {
		h = (h ^ uint64(p+1)) * hashPrime
	}
	s := &stream{}
	s.pcg.Seed(seed, h)
	return s
}

func (s *stream) bits() uint64 { return s.pcg.Uint64() }

// below returns a number from 0 to n-1, or 0 if there is none.
func (s *stream) below(n int) int {
	if n <= 0 {
		return 0
	}
	return int(s.bits() >> 1 % uint64(n))
}

// chance is true in the given share of cases, in thousandths.
func (s *stream) chance(thousandths int) bool { return s.below(1000) < thousandths }

// between returns a duration from lo to hi.
func (s *stream) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(s.bits()>>1%uint64(hi-lo))
}

// spread returns a duration from lo to hi of any order of magnitude: short ones
// are as likely as long ones.
func (s *stream) spread(lo, hi time.Duration) time.Duration {
	doublings := 0
	for d := lo; d < hi; d *= 2 {
		doublings++
	}
	d := lo << s.below(doublings+1)
	return min(hi, s.between(d, 2*d))
}
