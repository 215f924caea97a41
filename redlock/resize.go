package redlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorumlock/quorumlock/quorum"
)

// Resize changes the number of permits for all clients. Permits that are held stay
// with their holders. If there are fewer permits from now on, no client gets another
// permit until enough of the held permits were given back. This handle keeps the old
// number, so make a new one; waiters with such a handle are notified, and fail with
// ErrPermits. Resize also fails with ErrPermits if the semaphore has a different number of
// permits than this handle. After ErrNoQuorum some masters have the new number and some
// the old one, and perhaps no client gets a permit: call it again. The same may happen
// when masters that have the new number lose their memory while others were away.
//
// Resizes are ordered: the last one counts at every master that hears of it, in
// whichever order it hears of them. A master that was away learns of it from the next
// client that gets or renews permits, or from another call.
func (s *Semaphore) Resize(ctx context.Context, permits int) error {
	l := &s.lock
	if err := l.check(ctx, "resize"); err != nil {
		return err
	}
	if err := checkPermits("Resize", permits); err != nil {
		return err
	}
	order, err := s.nextResize(ctx, permits)
	if err != nil {
		return err
	}
	k := s.kind(1)
	r := l.client.members.Ask(quorum.Question{Command: k.keys.Resize(permits, order), Judge: done{}})
	defer r.Free()
	if err := l.client.seams.Wait(ctx, r.Ready()); err != nil {
		return l.fail("resize", ended(ctx), r)
	}
	if r.Outcome() != quorum.Won {
		return l.fail("resize", l.closedOr(whyLost(k.claim(), r)), r)
	}
	return nil
}

// nextResize returns the order of a Resize to so many permits: above that of every
// Resize that any master has reported, which includes every successful Resize, and
// usually above that of the unreported ones.
func (s *Semaphore) nextResize(ctx context.Context, permits int) (int64, error) {
	c := s.lock.client
	h, err := c.Inspect(ctx, s.name)
	if err != nil {
		return 0, err
	}
	if h.Permits != 0 && h.Permits != s.permits && h.Permits != permits {
		why := fmt.Errorf("%w: the masters have %d, this handle %d", ErrPermits, h.Permits, s.permits)
		return 0, s.lock.failed("resize", why, nil)
	}
	order := c.clock.Now().UnixMicro()
	for _, v := range h.Nodes {
		order = max(order, v.seen.Order+1)
	}
	return order, nil
}

// limit returns the limit below which all slots must be that are given to a client
// now. It is the number of permits; after a Resize to fewer, that less the slots from
// there on that any master knows to be taken.
//
// Invariant: no more permits are held than there are, or than there were at the Resize
// (S39). Whatever is held from before it is at a majority, and so at one master that
// answered us; and slots that were given since are below the highest limit of any claim.
func (p *permit) limit(ballots []quorum.Ballot) int {
	taken := map[int]bool{}
	above := 0
	for _, b := range ballots {
		for _, slot := range report(b) {
			if !taken[slot] && slot >= p.total {
				above++
			}
			taken[slot] = true
		}
	}
	limit := p.total
	for limit > 0 && limit+above > p.total && !p.local {
		if limit--; taken[limit] {
			above++
		}
	}
	return limit
}

// report reads which slots others have at a master that knows of a Resize.
func report(b quorum.Ballot) []int {
	g := permitGrant(b)
	if g.Taken() == "" {
		return nil
	}
	mine := map[int]bool{}
	for _, slot := range g.Slots().Numbers() {
		mine[slot] = true
	}
	return slices.DeleteFunc(g.Taken().Numbers(), func(slot int) bool { return mine[slot] })
}
