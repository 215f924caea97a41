package redlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// elected finds the leader, which holds the lock at a majority, and the last value
// that one of them has of it. It also returns the value of its lease.
func elected(ballots []quorum.Ballot) (_ Leader, lease string, _ error) {
	need := quorum.Size(len(ballots))
	var answers []wire.Leading
	for _, b := range ballots {
		if a, ok := wire.LeadingOf(b.Reply); ok {
			answers = append(answers, a)
		}
	}
	if len(answers) < need {
		return Leader{}, "", ErrNoQuorum
	}
	for _, candidate := range answers {
		value := candidate.Value
		its := slices.DeleteFunc(slices.Clone(answers), func(a wire.Leading) bool { return a.Value != value })
		if value == "" || len(its) < need {
			continue
		}
		leader := Leader{Remaining: remaining(its, need)}
		leader.Client, leader.Value, leader.Since = ParseValue(value)
		for _, a := range its {
			if a.Number > leader.Number {
				leader.Number, leader.Value = a.Number, a.Says
			}
		}
		token, ok := committed(its, need)
		if !ok {
			return Leader{}, "", ErrNoQuorum // its masters do not agree yet
		}
		leader.Token = token
		return leader, value, nil
	}
	return Leader{}, "", ErrNoLeader
}

// remaining is how long a majority keeps the lock.
func remaining(answers []wire.Leading, need int) time.Duration {
	slices.SortFunc(answers, func(a, b wire.Leading) int { return cmp.Compare(b.Left, a.Left) })
	return answers[need-1].Left
}

// committed returns the counter of a majority, which is the leader's token.
func committed(answers []wire.Leading, need int) (token uint64, ok bool) {
	for _, a := range answers {
		n := 0
		for _, b := range answers {
			if a.Counter == b.Counter {
				n++
			}
		}
		if n >= need {
			return a.Counter, true
		}
	}
	return 0, false
}
