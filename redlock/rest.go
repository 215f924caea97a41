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

// rest is whether a client is at rest: nobody has used it for a while, so its masters are not looked
// at.
//
// That is safe, because a vote does not count whose master was not looked at within
// guard.HeardWithin. So that votes count, the first operation after a rest has all masters looked at.
// It waits until a quorum that votes has answered. An answer alone is not enough: a master that has
// restarted answers, but does not vote.
type rest struct {
	resting atomic.Bool // the masters must be looked at before the next operation; set under Client.mu

	// Client.mu guards the rest.
	seq     uint64        // what Client.seq was when the client was last seen in use
	used    drift.Instant // and when that was
	polled  drift.Instant // when a node last called idle
	rousing *rousing      // the rest is ending; nil: it is not
	groups  *Groups       // the client is one of these; or nil
}

// restAfter is for how long nobody uses a client before it rests.
const restAfter = 10 * time.Second

func (o *options) restAfter() time.Duration {
	if o.seams.Rest > 0 {
		return o.seams.Rest
	}
	return restAfter
}

// idle reports whether a node need not look at its master. Each node calls it with every heartbeat.
func (c *Client) idle() bool {
	now := c.watch.Now()
	c.mu.Lock()
	slept := c.rest.slept(now)
	idle, groups := c.beginRest(now), c.rest.groups
	c.mu.Unlock()
	if idle && (slept || groups.cutOff()) {
		c.stir()
		return false
	}
	return idle
}

// slept reports whether the client was suspended since the last heartbeat. To such a client all
// masters' clocks seem to have been set forward, which keeps the masters from voting until a restart
// guard has passed. It begins with a look, so there is one now, and not with the next operation.
func (r *rest) slept(now drift.Instant) bool {
	asleep := now.Sub(r.polled) - (now.Monotonic() - r.polled.Monotonic())
	r.polled = now
	return asleep > time.Second
}

// beginRest begins the rest if nobody has used the client for a while, and reports whether the client
// rests. The mutex is held.
func (c *Client) beginRest(now drift.Instant) bool {
	r, seq := &c.rest, c.seq.Load()
	switch {
	case seq != r.seq, c.held.last != nil, c.waitedFor():
		r.seq, r.used = seq, now
		return false
	case r.rousing != nil, now.Sub(r.used) < c.opt.restAfter():
		return false
	}
	r.resting.Store(true)
	return true
}

// waitedFor reports whether a call is under way, or a caller follows messages. The mutex is held.
func (c *Client) waitedFor() bool { return c.farewell.calls.Load() > 0 || len(c.followers) > 0 }

// cutOff reports whether a caller waits, and no quorum of the masters votes.
func (c *Client) cutOff() bool {
	c.mu.Lock()
	waited := c.waitedFor()
	c.mu.Unlock()
	return waited && c.voteless() != nil
}

// rouse ends the rest of the client, if it rests, and reports whether it did. It ends the rest of the other
// clients of its Groups, too, and waits for them: one of their masters may know that a name has moved.
func (c *Client) rouse(ctx context.Context) (rested bool) {
	r := c.beginRousing()
	if r == nil {
		return false
	}
	c.mu.Lock()
	g := c.rest.groups
	c.mu.Unlock()
	if g == nil {
		r.wait(ctx)
		return true
	}
	rouseAll(ctx, g.clients)
	return true
}

// rouseAll ends the rest of several clients, in parallel.
func rouseAll(ctx context.Context, clients []*Client) {
	var begun []*rousing
	for _, c := range clients {
		begun = append(begun, c.beginRousing())
	}
	for _, r := range begun {
		r.wait(ctx)
	}
}

// stir ends the rest of the client, if it rests, for as long as a use does. It does not wait.
func (c *Client) stir() {
	now := c.watch.Now()
	c.mu.Lock()
	c.rest.used = now
	c.mu.Unlock()
	c.beginRousing()
}

// beginRousing has all masters looked at, unless that has begun. It returns nil if the client does not
// rest, or is closed.
func (c *Client) beginRousing() *rousing {
	if !c.rest.resting.Load() {
		return nil
	}
	defer c.leave()
	if !c.enter() {
		return nil
	}
	c.mu.Lock()
	r := c.rest.rousing
	if r != nil || !c.rest.resting.Load() || c.closed.Load() { // see wakeRoused
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
	// A node has answered the look before it answers this: it is the same script, so a master that has
	// lost its scripts is sent both once more, in this order.
	c.members.Survey(wire.LookAlone(c.opt.prefix), r)
	return r
}

// wakeRoused has the callers go on that wait for the end of a rest. The client is closed, so that no
// other end of a rest begins.
func (c *Client) wakeRoused() {
	c.mu.Lock()
	r := c.rest.rousing
	c.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// rousing is the end of a rest. It watches the survey that follows the looks.
type rousing struct {
	client   *Client
	over     chan struct{}
	answered quorum.Set // guarded by Client.mu
}

// Voted implements quorum.VoteWatcher.
func (r *rousing) Voted(round *quorum.Round, i int) {
	if round.Ballot(i).Vote != quorum.Granted {
		return // there was no answer
	}
	c := r.client
	c.mu.Lock()
	r.answered |= quorum.Only(i)
	answered := r.answered
	c.mu.Unlock()
	votes := 0
	for i, n := range c.members.Nodes() {
		if answered.Has(i) && whyNoVote(n) == nil {
			votes++
		}
	}
	if votes >= c.members.Need() {
		r.end()
	}
}

// Decided implements quorum.Watcher: all masters have answered, or a node timeout has passed.
func (r *rousing) Decided(*quorum.Round) { r.end() }

// Late implements quorum.Watcher.
func (r *rousing) Late(*quorum.Round, int, quorum.Ballot) {}

// wait returns when the rest is over, or ctx has ended, which the caller finds by itself.
func (r *rousing) wait(ctx context.Context) {
	if r != nil {
		r.client.seams.Wait(ctx, r.over)
	}
}

func (r *rousing) end() {
	c := r.client
	c.mu.Lock()
	ends := c.rest.rousing == r
	if ends {
		c.rest.rousing = nil
		c.rest.resting.Store(false)
	}
	c.mu.Unlock()
	if ends {
		close(r.over)
	}
}
