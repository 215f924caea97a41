package quorum

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// poll is the vote itself: the ballots of a fixed set of nodes and their
// outcome. It knows nothing of time, of waiting callers, or of other goroutines.
//
// Invariant: the tally counts the ballots that came before the decision, each
// node's once; the outcome never changes after it.
type poll struct {
	ballots []Ballot
	tally   Tally
	decided bool
}

// Ballot is one node's vote with the reply it was read from.
type Ballot struct {
	Reply wire.Reply
	// After is how long the answer took, if the Members time answers; zero: none
	// has come.
	After time.Duration
	Vote  Vote
	Late  bool // it came after the decision
}

// open begins a poll with the votes that are known before any node is asked.
// They may decide it. It returns how many nodes are to be asked.
func (p *poll) open(t Tally, granted, absent Set) (asked int) {
	for i := range p.ballots {
		switch {
		case granted.Has(i):
			p.ballots[i] = Ballot{Vote: Granted}
			t.Count(Granted)
		case absent.Has(i):
			p.ballots[i] = Ballot{Vote: Absent}
			t.Count(Failed)
		default:
			p.ballots[i] = Ballot{}
			asked++
		}
	}
	p.tally, p.decided = t, t.Outcome() != Open
	return asked
}

// cast takes node i's ballot. It reports whether the ballot is late, and
// whether it decides the poll.
func (p *poll) cast(i int, b *Ballot) (late, decides bool) {
	b.Late = p.decided
	p.ballots[i] = *b
	if b.Late {
		return true, false
	}
	p.tally.Count(b.Vote)
	p.decided = p.tally.Outcome() != Open
	return false, p.decided
}

// close ends a poll that is open: every node that has not voted fails, for the
// reason given.
func (p *poll) close(why func(i int) *wire.Error) {
	for i := range p.ballots {
		if p.ballots[i].Vote == Pending {
			p.ballots[i] = Ballot{Vote: Failed, Reply: wire.Reply{Err: why(i)}}
			p.tally.Count(Failed)
		}
	}
	p.decided = true
}
