package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

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
