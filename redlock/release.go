package redlock

import (
	"context"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// release deletes the lease from every node and waits until a quorum confirmed.
// The caller's context plays no part: a request that was cancelled must not
// leave its lock behind (L9).
func (l *Lease) release(since drift.Instant) error {
	c := l.lock.client
	r := l.askRelease(since)
	defer r.Free()
	c.seams.Wait(context.Background(), r.Ready()) // the round ends by itself
	err := l.confirmed(r)
	l.lock.observe(Event{Kind: LeaseReleased, Err: err})
	return err
}

// askRelease has every node delete the lease's value.
func (l *Lease) askRelease(since drift.Instant) *quorum.Round {
	return l.lock.client.panel.Ask(quorum.Question{Command: l.releaseCommand(), Judge: released, Since: since})
}

func (l *Lease) releaseCommand() *node.Command {
	l.mu.Lock()
	ttl := l.ttl
	if l.renewal != nil {
		ttl = max(ttl, l.renewal.ttl)
	}
	l.mu.Unlock()
	return l.lock.release(l.value, ttl, andWake)
}

// confirmed reads the answers to a release. That a quorum did not have the
// value any more, although the lease was valid, means that it had been lost.
func (l *Lease) confirmed(r *quorum.Round) error {
	t := r.Tally()
	if t.Outcome() != quorum.Won {
		return l.lock.fail("unlock", ErrNoQuorum, r)
	}
	gone := 0
	var few [16]quorum.Ballot
	for _, b := range r.Ballots(few[:0]) {
		if b.Vote == quorum.Granted && b.Reply.Value != int64(1) {
			gone++
		}
	}
	if gone >= t.Need() {
		return l.lock.fail("unlock", ErrLost, r)
	}
	return nil
}
