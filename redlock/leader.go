package redlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// look asks who leads. It also returns the value of the leader's lease.
//
// The masters of a new lease may have different counters until its token is decided, which
// takes less than a node timeout. They may also differ as long as the lease lasts, because
// one of them granted late (L53). So where they do, look asks twice, and then believes the
// lowest.
func (e *Election) look(ctx context.Context) (Leader, string, error) {
	first, lease, settled, err := e.survey(ctx)
	if err != nil || settled {
		return first, lease, err
	}
	if err := e.client.pause(ctx); err != nil {
		return Leader{}, "", e.mutex.lock.fail("leader", err, nil)
	}
	again, same, settled, err := e.survey(ctx)
	if err == nil && !settled && same != lease {
		return Leader{}, "", e.mutex.lock.fail("leader", ErrNoQuorum, nil) // a new lease meanwhile
	}
	return again, same, err
}

// survey asks every master once. It reports whether a majority agree on the token.
func (e *Election) survey(ctx context.Context) (_ Leader, lease string, settled bool, _ error) {
	c, l := e.client, &e.mutex.lock
	if err := l.check(ctx, "leader"); err != nil {
		return Leader{}, "", false, err
	}
	r := c.members.Survey(e.keys.Leader())
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return Leader{}, "", false, l.fail("leader", ended(ctx), r)
	}
	leader, lease, settled, err := elected(r.Ballots(nil))
	if err != nil {
		return Leader{}, "", false, l.fail("leader", l.closedOr(err), r)
	}
	return leader, lease, settled, nil
}

// pause waits for a node timeout.
func (c *Client) pause(ctx context.Context) error {
	defer c.leave()
	if !c.enter() {
		return ErrClosed
	}
	p := &moment{over: make(chan struct{}, 1)}
	c.timers.Set(&p.timer, c.opt.nodeTimeout, p)
	defer c.timers.Cancel(&p.timer)
	if err := c.seams.Wait(ctx, p.over); err != nil {
		return ended(ctx)
	}
	return nil
}

type moment struct {
	timer drift.Timer
	over  chan struct{}
}

// Fire implements drift.Handler.
func (p *moment) Fire() { p.over <- struct{}{} }

// elected finds the leader, which holds the lock at a majority, and the last value
// that one of them has of it. It also returns the value of its lease, and whether a
// majority agree on its token.
func elected(ballots []quorum.Ballot) (_ Leader, lease string, settled bool, _ error) {
	need := quorum.Size(len(ballots))
	var answers []wire.Leading
	for _, b := range ballots {
		if a, ok := wire.LeadingOf(b.Reply); ok {
			answers = append(answers, a)
		}
	}
	if len(answers) < need {
		return Leader{}, "", false, ErrNoQuorum
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
		leader.Token, settled = committed(its, need)
		return leader, value, settled, nil
	}
	return Leader{}, "", false, ErrNoLeader
}

// remaining is how long a majority keeps the lock.
func remaining(answers []wire.Leading, need int) time.Duration {
	slices.SortFunc(answers, func(a, b wire.Leading) int { return cmp.Compare(b.Left, a.Left) })
	return answers[need-1].Left
}

// committed returns the counter of a majority, which is the leader's token, or else the
// lowest counter of the masters that store its lease.
//
// Invariant: it is not above the leader's token, and equals it once a renewal has reached
// them all. The token was raised at a majority before the lease began, so at one of these
// masters at least, and no other client is granted anything there. A master that granted
// late may have a higher counter, and keeps it.
func committed(answers []wire.Leading, need int) (token uint64, settled bool) {
	counters := make([]uint64, len(answers))
	for i, a := range answers {
		counters[i] = a.Counter
	}
	if token := agreed(counters, need); token != 0 {
		return token, true
	}
	return slices.Min(counters), false
}
