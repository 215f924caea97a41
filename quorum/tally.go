// Package quorum is the vote: ask every node in parallel, count, and decide as
// early as the count allows.
//
// It is for package redlock. Its users meet Vote, in the votes of an error. The
// rest may change at any time.
package quorum

import "strconv"

// Size returns how many of n nodes make a quorum: a strict majority, so that
// any two quorums share a node. n is the configured number of nodes, never the
// number that happens to be reachable (S13, S16).
func Size(n int) int { return n/2 + 1 }

// Vote is what one node's answer means.
type Vote uint8

const (
	Pending Vote = iota // no answer yet
	Granted             // yes
	Refused             // no
	Failed              // no answer that counts
	Absent              // not asked
)

func (v Vote) String() string {
	switch v {
	case Pending:
		return "pending"
	case Granted:
		return "granted"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case Absent:
		return "not asked"
	}
	return "vote(" + strconv.Itoa(int(v)) + ")"
}

// Outcome is what the votes counted so far decide.
type Outcome uint8

const (
	Open Outcome = iota // can still go either way
	Won                 // enough grants
	Lost                // enough grants have become impossible
)

func (o Outcome) String() string {
	switch o {
	case Won:
		return "won"
	case Lost:
		return "lost"
	}
	return "open"
}

// Tally counts the votes of a fixed set of nodes, and does no more: a Round decides
// which nodes are asked, when and how. A Tally that needs no grants is a survey: it is
// Won when every node has answered.
type Tally struct {
	nodes, need              int
	granted, refused, failed int
}

// NewTally returns an empty tally of n nodes that is won by a quorum.
func NewTally(n int) Tally { return Tally{nodes: n, need: Size(n)} }

// Count adds one node's vote. A node votes once.
func (t *Tally) Count(v Vote) {
	switch v {
	case Granted:
		t.granted++
	case Refused:
		t.refused++
	case Failed:
		t.failed++
	}
}

// Outcome is Won from the deciding grant on, and Lost as soon as the votes that
// are missing cannot make a quorum, so that an even split decides immediately
// (L10).
func (t Tally) Outcome() Outcome {
	switch {
	case t.need == 0 && t.Pending() > 0:
		return Open
	case t.granted >= t.need:
		return Won
	case t.granted+t.Pending() < t.need:
		return Lost
	}
	return Open
}

// Conclusive reports whether the refusals alone make a quorum of grants
// impossible: a verdict that no missing answer can change.
func (t Tally) Conclusive() bool { return t.nodes-t.refused < t.need }

// Unreachable reports whether so many nodes failed that the others are no
// quorum, whatever they say.
func (t Tally) Unreachable() bool { return t.nodes-t.failed < t.need }

// Answered reports whether a quorum has answered or failed.
func (t Tally) Answered() bool { return t.nodes-t.Pending() >= t.need }

// Need returns how many grants win.
func (t Tally) Need() int { return t.need }

// Granted, Refused, Failed and Pending return how many nodes voted so.
func (t Tally) Granted() int { return t.granted }
func (t Tally) Refused() int { return t.refused }
func (t Tally) Failed() int  { return t.failed }
func (t Tally) Pending() int { return t.nodes - t.granted - t.refused - t.failed }
