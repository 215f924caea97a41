package redlock

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// elected finds the leader, which holds the lock at a majority, and the last value
// that one of them has of it. It also returns the value of its lease.
func elected(ballots []quorum.Ballot) (_ Leader, lease string, _ error) {
	need := quorum.Size(len(ballots))
	var answers [][]any
	for _, b := range ballots {
		if f := fields(b.Reply); b.Reply.Err == nil && len(f) == 5 {
			answers = append(answers, f)
		}
	}
	if len(answers) < need {
		return Leader{}, "", ErrNoQuorum
	}
	for _, candidate := range answers {
		value := text(candidate[0])
		its := slices.DeleteFunc(slices.Clone(answers), func(f []any) bool { return text(f[0]) != value })
		if value == "" || len(its) < need {
			continue
		}
		leader := Leader{Remaining: remaining(its, need)}
		leader.Client, leader.Value, leader.Since = ParseValue(value)
		for _, f := range its {
			if number, err := strconv.ParseInt(text(f[3]), 10, 64); err == nil && number > leader.Number {
				leader.Number, leader.Value = number, text(f[4])
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
func remaining(answers [][]any, need int) time.Duration {
	left := make([]int64, len(answers))
	for i, f := range answers {
		left[i], _ = f[1].(int64)
	}
	slices.SortFunc(left, func(a, b int64) int { return cmp.Compare(b, a) })
	return time.Duration(left[need-1]) * time.Millisecond
}

// committed returns the counter of a majority, which is the leader's token.
func committed(answers [][]any, need int) (token uint64, ok bool) {
	for _, f := range answers {
		n := 0
		for _, g := range answers {
			if g[2] == f[2] {
				n++
			}
		}
		if c, isNumber := f[2].(int64); isNumber && n >= need {
			return uint64(c), true
		}
	}
	return 0, false
}
