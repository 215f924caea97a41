package simulate

import (
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// What the masters have answered decides a question, and the client does what follows
// from it at once. The replies are counted here once more, as they are handed to the
// library.

// replies counts what the masters of a client have replied to one question.
type replies struct {
	masters                  int
	granted, refused, failed int
	decided                  bool
	at                       time.Duration // when it was decided

	mono time.Duration // by the client's monotonic clock, when it was about to be asked
}

// ask returns what is to be counted of a question that is asked now.
func (c *client) ask() replies {
	return replies{masters: len(c.masters), mono: c.host.clock.Monotonic()}
}

// need is how many grants win.
func (q *replies) need() int { return quorum.Size(q.masters) }

// count adds a reply, unless the question is decided. It reports whether this reply
// decides.
func (q *replies) count(vote quorum.Vote, now time.Duration) (decides bool) {
	if q.decided {
		return false
	}
	switch vote {
	case quorum.Granted:
		q.granted++
	case quorum.Refused:
		q.refused++
	default:
		q.failed++
	}
	size, pending := quorum.Size(q.masters), q.masters-q.granted-q.refused-q.failed
	if q.granted >= size || q.granted+pending < size {
		q.decided, q.at = true, now
	}
	return q.decided
}

// sends notes what a client asks its masters.
func (c *client) sends(master int, cmd *wire.Command) {
	switch cmd.Op {
	case wire.OpRepair:
		if cl := c.claimOf(cmd.Args[0]); cl != nil {
			cl.extension.mended |= quorum.Only(master)
		}
		if x := c.handles; x != nil && c.preemption.every == 0 && x.granted < quorum.Size(x.masters) {
			c.blame("a key is put back although no quorum has extended the lease, which hides that another client held the lock")
		}
	case wire.OpExtend:
		if cl := c.claimOf(cmd.Args[0]); cl != nil && cl.extension.cmd != cmd && !c.config.Lock.IsSemaphore() {
			if c.preemption.every == 0 {
				c.punctually(cl)
				if !cl.hold.Valid() {
					c.blame("a lease of " + strconv.Quote(cl.names[0]) + " is renewed that has ended")
				}
			}
			cl.extend(cmd)
		}
	}
	switch cmd.Op {
	case wire.OpAcquire, wire.OpAsk, wire.OpExtend, wire.OpRepair:
		c.asksFor(cmd)
	case wire.OpRelease:
		c.worth(cmd)
	}
}

// hand gives the library a reply.
func (c *client) hand(master int, cmd *wire.Command, done func(wire.Reply), r wire.Reply) {
	if cmd == nil || len(cmd.Args) == 0 {
		done(r)
		return
	}
	if r.Young {
		c.unproven[master] = c.world.now + min(node.LongestAttempt, c.guard.Hold)*21/20
	}
	c.hears(master, cmd, r)
	c.handling = cmd.Op
	done(r)
	c.handling, c.handles = 0, nil
	c.heard(cmd)
}

// hears counts a reply before the library has it.
func (c *client) hears(master int, cmd *wire.Command, r wire.Reply) {
	now := c.world.now
	c.sized(master, cmd, r)
	if cmd.Op == wire.OpAcquire || cmd.Op == wire.OpAsk {
		c.debts.answered(master, cmd, r)
	}
	if r.Err != nil && cmd.Op == wire.OpExtend && errors.Is(r.Err, node.ErrSilent) {
		c.blame("a master that does not answer is not asked to extend what is held")
	}
	switch cmd.Op {
	case wire.OpCommit:
		if c.resizing != nil && cmd.Script == wire.ScriptPermitResize && r.Err == nil && r.Value == int64(1) {
			c.resizing.granted++
		}
	case wire.OpExtend:
		cl := c.claimOf(cmd.Args[0])
		if cl == nil || cl.extension.cmd != cmd {
			return
		}
		x := &cl.extension
		if x.count(extends(r), now) {
			x.valid, x.left, x.own = cl.hold.Valid(), cl.until.Sub(c.host.clock.Now()), c.host.clock.Monotonic()
		}
		c.handles = x
		if r.Err == nil && r.Value == int64(0) {
			x.lacks |= quorum.Only(master)
		}
	}
}

// extends reads the reply to a renewal.
func extends(r wire.Reply) quorum.Vote {
	switch {
	case r.Err != nil:
		return quorum.Failed
	case r.Value == int64(1) && !r.Young:
		return quorum.Granted
	case r.Value == int64(0) || r.Value == int64(-1):
		return quorum.Refused
	}
	return quorum.Failed
}

// blame reports what the client did wrong.
func (c *client) blame(what string) {
	c.check.report(Violation{Kind: Custom, What: c.host.name + ": " + what, Clients: []int{c.index}})
}

// claimOf returns the hold of a client that masters store by that value, or nil.
func (c *client) claimOf(value string) *claim {
	for _, cl := range c.check.claims {
		if cl.client == c && cl.value == value {
			return cl
		}
	}
	return nil
}
