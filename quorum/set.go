package quorum

import "math/bits"

// Set is a set of nodes by their place among the Members.
type Set uint64

// Only returns the set of node i.
func Only(i int) Set { return 1 << i }

// Has reports whether node i is in the set.
func (s Set) Has(i int) bool { return s&Only(i) != 0 }

// Len returns how many nodes are in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }
