package redlock

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorumlock/quorum"
)

// Resize changes the number of permits for everybody. Permits that are held stay
// with their holders, also when there are fewer from now on: then nobody gets another
// one until enough of those that are held were given back. This handle goes on
// with the old number, so make a new one; those who wait with such a handle fail
// with ErrPermits. So does Resize when the semaphore has another number than this
// handle says. After ErrNoQuorum some masters have the new number and some the old
// one, and perhaps nobody gets a permit: call it again.
//
// Resizes are ordered: of several the last one counts at every master that hears of
// it, in whichever order it hears of them. A master that was away is told by the
// first lease of that number that is renewed, or by another call.
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
	r := l.client.members.Ask(quorum.Question{Command: k.keys.Resize(permits, order), Judge: one{}})
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
// Resize that any master has told us of, among them all that were successful, and
// mostly above those that we were not told of.
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
