package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// release deletes the lease from every node and waits until a quorum confirmed. The
// caller's context plays no part: a request that was cancelled must not leave its lock
// behind (L9).
func (l *Lease) release(since drift.Instant) error {
	if l.of != nil { // its tenure has seen to it
		l.observeEnd(LeaseReleased, nil)
		return nil
	}
	l.yield()
	return l.releaseBy(l.releaseCommand(), since)
}

// releaseBy is release with a command that may do more.
func (l *Lease) releaseBy(cmd *wire.Command, since drift.Instant) error {
	c := l.lock.client
	r := l.askRelease(cmd, since, nil)
	defer r.Free()
	c.seams.Wait(context.Background(), r.Ready()) // the round ends by itself
	err := l.confirmed(r)
	l.observeEnd(LeaseReleased, err)
	return err
}

// releaseLater is release for an owner that does not wait. Without an observer the
// answers are not counted.
func (l *Lease) releaseLater(since drift.Instant) {
	if l.of != nil {
		l.observeEnd(LeaseReleased, nil)
		return
	}
	l.yield()
	if l.lock.client.opt.observer == nil {
		l.giveBack()
		return
	}
	l.askRelease(l.releaseCommand(), since, (*confirmation)(l))
}

// confirmation is the round of a release whose owner does not wait.
type confirmation Lease

func (c *confirmation) Decided(r *quorum.Round) {
	l := (*Lease)(c)
	l.observeEnd(LeaseReleased, l.confirmed(r))
}

func (c *confirmation) Late(*quorum.Round, int, quorum.Ballot) {}

// yielding is a claim to a lock that a release hands on, so that it is not free for callers that
// do not queue, unless its holder yields.
type yielding interface {
	yield(value string, d time.Duration) *wire.Command
}

// yield has the release that follows leave the lock to callers that do not queue, if that is due.
// A fair lock is left to nobody: in a pause its own TryLock would be refused, since others wait.
func (l *Lease) yield() {
	cl, ok := l.claim.(yielding)
	if !ok || !l.lock.kind.passed || l.lock.opt.atLeast != nil {
		return
	}
	c := l.lock.client
	d := c.queues.Yield(l.lock, l.value)
	if d == 0 {
		return
	}
	c.send(cl.yield(l.value, d))
}

// askRelease has every node delete the lease's value.
func (l *Lease) askRelease(cmd *wire.Command, since drift.Instant, w quorum.Watcher) *quorum.Round {
	c := l.lock.client
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: done{}, Watcher: w, Since: since})
	c.drop(l)
	return r
}

// giveBack sends the release to every node, and does not count the answers.
func (l *Lease) giveBack() {
	c := l.lock.client
	c.send(l.releaseCommand())
	c.drop(l)
}

// send gives a command to every node, and does not count the answers.
func (c *Client) send(cmd *wire.Command) {
	for _, n := range c.members.Nodes() {
		n.Do(cmd, nobodyAsks)
	}
}

func (l *Lease) releaseCommand() *wire.Command {
	l.mu.Lock()
	keep := l.longest
	l.mu.Unlock()
	return l.lock.keeping(l.claim.release(l.value, keep))
}

// confirmed reads the answers to the release of a lease that was valid when Unlock was
// called. A master that has nothing to delete refuses: another client may have had the
// lock there before. A majority that deleted it proves that no other client has held the
// lock (S54). If too many masters did not have it for such a majority, the lease had been
// lost: unless Close has deleted it meanwhile, or it has expired while the release was on
// its way.
func (l *Lease) confirmed(r *quorum.Round) error {
	t := r.Tally()
	answered := t.Conclusive() || t.Granted()+t.Refused() >= t.Need()
	switch {
	case t.Outcome() == quorum.Won, answered && (l.lock.client.closed.Load() || !l.lasts()):
		return nil
	case t.Conclusive():
		return l.lock.fail("unlock", ErrLost, r)
	}
	return l.lock.fail("unlock", l.lock.closedOr(ErrNoQuorum), r)
}

// lasts reports whether validity is left, whether or not the lease has ended: then no master
// can have let the key expire yet.
func (l *Lease) lasts() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wholeLeft(now) > 0
}
