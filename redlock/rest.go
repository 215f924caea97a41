package redlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// rest is whether a client rests: nobody has used it for a while, so its masters are not looked at.
// Nothing is believed for longer because of that: a vote counts only if its master was looked at just
// before. So the first operation after a rest has all masters looked at, and waits until all have
// answered, for no longer than a node timeout. A quorum of answers may not do: a master that has
// restarted answers, but does not vote.
type rest struct {
	resting atomic.Bool // until it is roused; set under Client.mu

	// Client.mu guards the rest.
	numbers uint64        // what Client.seq was when the client was last seen in use
	since   drift.Instant // and when that was
	asked   drift.Instant // when a node last asked
	rousing *rousing      // the rest is ending; nil: it is not
}

// restAfter is for how long nobody uses a client before it rests.
const restAfter = 10 * time.Second

// idle reports whether nobody has used the client for a while. The nodes ask that every second.
func (c *Client) idle() bool {
	now := c.watch.Now()
	idle, slept := c.unused(now)
	if slept {
		c.ending()
	}
	return idle
}

// unused reports whether nobody has used the client for a while, and whether it was suspended since
// it was last asked. Then the masters' clocks seem to have been set forward, which keeps the masters
// from voting for a restart guard: better now than from the next operation on.
func (c *Client) unused(now drift.Instant) (idle, slept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, numbers := &c.rest, c.seq.Load()
	slept = now.Sub(r.asked)-(now.Monotonic()-r.asked.Monotonic()) > time.Second
	r.asked = now
	used := numbers != r.numbers || c.held.last != nil || len(c.followers) > 0 || len(c.lookouts) > 0
	switch {
	case r.rousing != nil:
		return false, false
	case used || c.farewell.calls.Load() > 0:
		r.numbers, r.since = numbers, now
		return false, false
	case now.Sub(r.since) < c.opt.restAfter():
		return false, false
	}
	r.resting.Store(true)
	return !slept, slept
}

func (o *options) restAfter() time.Duration {
	if o.seams.Rest > 0 {
		return o.seams.Rest
	}
	return restAfter
}

// rouse ends the rest of the client, if it rests.
func (c *Client) rouse(ctx context.Context) {
	if r := c.ending(); r != nil {
		c.seams.Wait(ctx, r.over) // an error is found by the caller
	}
}

// ending begins to end the rest, unless that has begun. It returns nil if the client does not rest.
func (c *Client) ending() *rousing {
	if !c.rest.resting.Load() {
		return nil
	}
	defer c.leave()
	if !c.enter() {
		return nil
	}
	c.mu.Lock()
	r := c.rest.rousing
	if r != nil || !c.rest.resting.Load() {
		c.mu.Unlock()
		return r
	}
	r = &rousing{client: c, over: make(chan struct{})}
	c.rest.rousing = r
	c.mu.Unlock()
	for _, n := range c.members.Nodes() {
		if n, ok := n.(node.Resting); ok {
			n.Look()
		}
	}
	// A node that has answered this has answered the look before it.
	c.members.Survey(wire.Look(c.opt.prefix), r)
	return r
}

// rousing is the end of a rest. It watches the survey that follows the looks.
type rousing struct {
	client *Client
	over   chan struct{}
}

// Decided implements quorum.Watcher.
func (r *rousing) Decided(*quorum.Round) {
	c := r.client
	now := c.watch.Now()
	c.mu.Lock()
	c.rest.rousing, c.rest.since = nil, now
	c.rest.resting.Store(false)
	c.mu.Unlock()
	close(r.over)
}

// Late implements quorum.Watcher.
func (r *rousing) Late(*quorum.Round, int, quorum.Ballot) {}
