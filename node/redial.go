package node

import "time"

// Redial is how long to wait between two attempts to connect to a master. An outage has
// lasted since the last session that was good, and the pause is a sixteenth of that: who
// holds a lease loses no more than a sixteenth of an outage to the pauses (L45). The
// longer an outage is, the rarer the attempts are, up to a limit.
//
// A session is good if it lasted longer than the pause before it. A master that ends
// each session immediately is dialled as rarely as an unreachable master.
//
// These are rules without a connection or a clock, for a Master and for the masters of
// the simulator. The instants are of any clock that is not set.
type Redial struct {
	Min, Max time.Duration // of a pause

	lost  time.Duration // since when there has been no good session
	pause time.Duration // before the last attempt
}

// share is how much of an outage a pause is: one of so many parts.
const share = 16

// Ended notes that a session has ended which stood for so long, or not at all: then the
// attempt has failed. It returns the pause before the next attempt: it is random in its
// upper half, so that clients do not all return together.
func (r *Redial) Ended(stood, now time.Duration, random uint64) time.Duration {
	if stood > r.pause || r.pause == 0 {
		r.lost = now
	}
	most := min(max((now-r.lost)/share, r.Min), r.Max)
	r.pause = most/2 + time.Duration(random%uint64(most/2+1))
	return r.pause
}
