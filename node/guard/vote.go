package guard

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// This file decides whether a vote counts, by the marker, the clock and the replication that were read
// together with it.

// Vouched reports whether a marker that was read together with a vote proves that the
// vote is of a memory that we know. If not, the master must be looked at, and the vote
// must not count: since our last look the master may have forgotten the holder of the
// lock, and another client may have marked it anew (S24, S34).
func (g *Guard) Vouched(marker string) bool {
	if g.config.Hold <= 0 || g.blind {
		return true
	}
	if marker == g.stored && marker != "" {
		return true
	}
	m, err := ParseMarker(marker)
	return err == nil && m.RunID != "" && m.same(g.marker) && g.toldMap(m.Group)
}

// Remained reports whether the server was a master all the time since we last looked,
// by its current replication.
func (g *Guard) Remained(replica bool, promotion string) bool {
	return g.config.Hold <= 0 || !replica && (promotion == "" || promotion == g.role.promotion)
}

// Timely reports whether the master's clock, read together with a message, is ahead by no more
// than our clock allows. If it is further ahead, the master must be looked at, and the
// message must not count: a clock that was set forward ends keys early, so that the lock
// may still be held (S2). A zero time was not read. A message after a vote that was not timely does not
// count before the next look: it may be about the same question (S84).
func (g *Guard) Timely(at time.Time) bool {
	return !g.watches() || at.IsZero() || !g.untimely.taken() && g.time.ahead(at, g.clock.now()) == 0
}

// TimelyVote is Timely for a vote. The instant at which a vote was sent is known, so the
// vote is also a reading of the master's clock. A vote that is not timely is judged by the next look:
// by then the clock may be where it was.
func (g *Guard) TimelyVote(at time.Time, sent time.Duration) bool {
	r := reading{node: at, sent: sent, came: g.clock.now()}
	switch {
	case !g.watches() || at.IsZero():
		return true
	case g.untimely.taken() || g.time.overlooked(sent) && g.group.several():
		return false
	case !g.Timely(at), g.time.behind(r) > 0 && (g.unfinished() || !g.group.mostWentBack(r.came)):
		g.untimely = r
		return false
	}
	g.time.read(r)
	g.measure(r)
	return true
}

// Hears reports whether a grant counts that comes in a message with this proof instead
// of an answer.
func (g *Guard) Hears(proof string) bool {
	if g.config.Hold <= 0 {
		return true
	}
	marker, at := wire.ParseProof(proof)
	late := g.Now().Sub(g.proven) > HeardWithin
	return !late && g.Vouched(marker) && g.Timely(at) && g.Admit(wire.OpAcquire) == nil
}

// Weigh decides whether a vote that has come counts: not if Weigh returns an error, and
// not yet if it is an extension by a young memory, or by a master that tells no map. The guard is asked when the vote comes,
// and not only when the command is sent: a question from before a loss does not count
// after it.
func (g *Guard) Weigh(op wire.Op, vouched bool) (young bool, err error) {
	switch {
	case op == wire.OpExtend:
		return g.Young() || !vouched || g.lacksMap() != nil, nil
	case !vouched:
		return false, fmt.Errorf("%w: its marker or its clock has changed, so it may have forgotten locks", ErrQuarantined)
	}
	return false, g.Admit(wire.OpAcquire)
}

// Accepted returns the stored form of the marker that Vouched compares with, or
// the empty string if Vouched does not compare.
func (g *Guard) Accepted() string {
	if g.config.Hold <= 0 || g.blind {
		return ""
	}
	return g.stored
}

// Young reports whether the master lost its memory so recently that a client may still
// count a vote that the master has forgotten. Then an extension by it proves nothing: the
// key may have been put back behind that vote (S35). The same holds for a master whose
// clock was just set back: the key ends early when the clock comes forward again (S59). It
// also holds for a master whose clock was not compared with the others.
func (g *Guard) Young() bool {
	if g.config.Hold <= 0 {
		return false
	}
	now, attempt := g.clock.now(), min(LongestAttempt, g.hold())
	return now < g.born+attempt+drift.Allowance(attempt, g.config.DriftFactor) || g.settles(now) > 0 || !g.compareClock(now)
}

// LongestAttempt is how long after it was asked for a grant may be counted. No client
// of this library gets a lock by an older vote, so the votes that a master forgets are
// soon worth nothing anywhere (S35).
const LongestAttempt = 2 * time.Second

// HeardWithin is how old a message about a grant may be. A message can be late without
// a sign of it, so it counts only if the master has shown its marker within that time, by
// the monotonic clock and by the wall clock: a suspend stops the monotonic one (S49).
// Heartbeats are more frequent. A vote counts only if the last look at the master's clock is
// no older either; see drift.HeardWithin.
const HeardWithin = drift.HeardWithin
