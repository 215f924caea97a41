package drift

import "time"

// Two holders come from a clock in two ways: a master's key ends early by what the
// master's clock gains after the grant, and a holder counts too long by what its own
// clock loses. A client cannot see the first kind exactly: it knows a clock only to
// within some error, and attributes some movement since its last reading to drift.
// Every validity is shortened by the movement that may stay unseen:
//
//	validity   = TTL - elapsed - (factor * TTL + 2 ms + UnnoticedBy(factor))
//	vote counts: forward movement <= Tolerance + factor * (time since an earlier look)
//
// Both are the same for every TTL. Locks of different TTLs share masters and names, so
// no client may tolerate more than the holder with the shortest TTL has given up.
const (
	// Unnoticed is how far a master's clock can be set forward while a lease lasts
	// without any client noticing: Tolerance, the drift that is put down to the time
	// between two looks at a clock (1 % of a second), and what a look itself takes on its
	// way to the master.
	Unnoticed = 20 * time.Millisecond
	// HeardWithin is how long ago the last look at a clock may be for a vote to count.
	HeardWithin = 1500 * time.Millisecond
	// Tolerance is how far a master's clock may have certainly been set forward for its
	// votes still to count.
	Tolerance = 5 * time.Millisecond
)

// UnnoticedBy returns Unnoticed for clients with the given drift factor: they put more
// down to drift between two looks than with the default (S62).
func UnnoticedBy(factor float64) time.Duration {
	return max(Unnoticed, Tolerance+time.Duration(factor*float64(HeardWithin)))
}

// beyond divides the drift factor for the part of the time between two readings of a
// clock that exceeds the longest TTL. Rates that differ by the whole factor are
// borne within a lease; over hours clocks keep to the 500 ppm of NTP.
const beyond = 20

// Drift returns by how much two clocks may have come apart over a time without a
// comparison, of which at most longest counts in full.
func Drift(passed, longest time.Duration, factor float64) time.Duration {
	whole := min(passed, longest)
	return time.Duration(factor * (float64(whole) + float64(passed-whole)/beyond))
}
