package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// Healthy returns nil if locks can be taken and held locks are renewed: a quorum of
// the masters votes, no lease is at risk (see Lease.AtRisk), and the masters can notify the
// callers that wait. Otherwise it returns all that is wrong, joined, a line each. The first is
// an *Error with every master if no quorum votes. After Close it returns ErrClosed.
//
// Healthy tells what the client knows, which learns of a master that hangs within a few seconds.
// It asks the masters only if nobody has used the client for ten seconds, and then waits until a
// quorum that votes has answered, for no longer than a node timeout. A probe is no use of the client.
func (c *Client) Healthy() error {
	c.rouse(context.Background())
	if c.closed.Load() {
		return ErrClosed
	}
	all := append([]error{c.voteless()}, c.leasesAtRisk()...)
	if c.queues.Deaf() {
		all = append(all, errors.New("redlock: no quorum of masters can notify the callers that wait: they poll"))
	}
	return errors.Join(all...)
}

// voteless returns an error if no quorum of the masters votes.
func (c *Client) voteless() error {
	nodes := c.members.Nodes()
	tally, votes := quorum.NewTally(len(nodes)), make([]Vote, len(nodes))
	for i, n := range nodes {
		votes[i] = Vote{Node: n.Addr(), Vote: quorum.Granted}
		if err := whyNoVote(n); err != nil {
			votes[i].Vote, votes[i].Err = quorum.Failed, err
		}
		tally.Count(votes[i].Vote)
	}
	if tally.Outcome() == quorum.Won {
		return nil
	}
	return &Error{Op: "health", Err: ErrNoQuorum, Votes: votes}
}

// whyNoVote returns why a master would not be asked for a vote now, or nil.
func whyNoVote(n node.Node) error {
	if v, ok := n.(node.Voting); ok {
		return v.Votes()
	}
	return nil
}

// leasesAtRisk returns an error for each lease that was not renewed for half of its validity.
func (c *Client) leasesAtRisk() (all []error) {
	now := c.watch.Now()
	for _, l := range c.leases() {
		l.mu.Lock()
		passed, left := now.Sub(l.since), l.left(now)
		risk := l.cause == nil && l.renewed() && passed >= l.half()
		l.mu.Unlock()
		if risk {
			all = append(all, fmt.Errorf("redlock: lock %q was not renewed for %v, and is held for another %v", l.Name(), passed.Round(time.Millisecond), max(0, left).Round(time.Millisecond)))
		}
	}
	return all
}

// risk is that a lease ends because it is not renewed in time.
type risk struct {
	warned bool          // of the present validity
	ch     chan struct{} // of AtRisk; nil until it is called
}

// AtRisk returns a channel that delivers when half of the validity has passed without a
// renewal: too few masters have answered. The lease is still held, and may still be renewed.
// After a renewal the channel may deliver again. It keeps one warning for a late receiver. It
// is never closed, and delivers nothing for a lease that is not to be renewed: with NoRenew, or
// when MaxHold is about to end it. Every call returns the same channel.
func (l *Lease) AtRisk() <-chan struct{} {
	if l.of != nil {
		return l.of.AtRisk()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.risk.ch == nil {
		l.risk.ch = make(chan struct{}, 1)
		if l.risk.warned {
			l.risk.ch <- struct{}{}
		}
		if l.cause == nil {
			l.setTimer(l.now())
		}
	}
	return l.risk.ch
}

// riskAt is when to warn that the lease was not renewed yet, from since; zero: do not. The
// mutex is held.
func (l *Lease) riskAt() time.Duration {
	wanted := l.lock.observed() || l.risk.ch != nil
	if !wanted || !l.renewed() || l.risk.warned {
		return 0
	}
	return l.half()
}

// renewed reports whether the lease is to be renewed: not with NoRenew, nor when MaxHold is about to
// end it. The mutex is held.
func (l *Lease) renewed() bool {
	return !l.lock.opt.noRenew && (l.renewAt > 0 || l.renewal != nil)
}

// half is when half of the validity has passed, from since. The mutex is held.
func (v *validity) half() time.Duration { return v.budget / 2 }

// risky reports whether it is time to warn, once for each validity, and has AtRisk deliver.
// The mutex is held.
func (l *Lease) risky(now drift.Instant) bool {
	at := l.riskAt()
	if at == 0 || now.Sub(l.since) < at {
		return false
	}
	l.risk.warned = true
	if l.risk.ch != nil && len(l.risk.ch) == 0 { // only we send, under the mutex
		l.risk.ch <- struct{}{}
	}
	return true
}

// warn tells the observer if the lease is at risk.
func (l *Lease) warn(risk bool) {
	if risk {
		l.observe(Event{Kind: LeaseAtRisk})
	}
}
