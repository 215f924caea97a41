package promises

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// The replies of the masters decide a question, and the client acts on the decision
// immediately. This file counts the replies once more, as they are handed to the library.

// Replies counts what the masters of a client have replied to one question.
type Replies struct {
	Masters                  int
	granted, refused, failed int
	decided                  bool
	at                       time.Duration // when it was decided
}

// ask returns the empty counts of a question that is asked now.
func (c *Client) ask() Replies {
	return Replies{Masters: len(c.Masters)}
}

// need is how many grants win.
func (q *Replies) need() int { return quorum.Size(q.Masters) }

// count adds a reply, unless the question is decided. It reports whether this reply
// decides.
func (q *Replies) count(vote quorum.Vote, now time.Duration) (decides bool) {
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
	size, pending := quorum.Size(q.Masters), q.Masters-q.granted-q.refused-q.failed
	if q.granted >= size || q.granted+pending < size {
		q.decided, q.at = true, now
	}
	return q.decided
}

// sends notes what a client asks its masters.
func (c *Client) sends(master int, cmd *wire.Command) {
	switch cmd.Op {
	case wire.OpRepair:
		if cl := c.claimOf(cmd.Args[0]); cl != nil {
			cl.extension.mended |= quorum.Only(master)
		}
		if x := c.handles; x != nil && c.Preemption.Every == 0 && x.granted < quorum.Size(x.Masters) {
			c.Blame("a key is put back although no quorum has extended the lease, which hides that another client held the lock")
		}
	case wire.OpExtend:
		if cl := c.claimOf(cmd.Args[0]); cl != nil && cl.extension.cmd != cmd {
			if c.Preemption.Every == 0 && !cl.Hold.Valid() {
				c.Blame("a lease of " + strconv.Quote(cl.Names[0]) + " is renewed that has ended")
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

// Hand gives the library a reply.
func (c *Client) Hand(master int, cmd *wire.Command, done func(wire.Reply), r wire.Reply) {
	if cmd == nil || len(cmd.Args) == 0 {
		done(r)
		return
	}
	if r.Young {
		c.unproven[master] = c.World.Now + min(guard.LongestAttempt, c.Guard.Hold)*21/20
	}
	c.hears(master, cmd, r)
	c.Handling = cmd.Op
	done(r)
	c.Handling, c.handles = 0, nil
	c.heard(cmd)
}

// hears counts a reply before the library has it.
func (c *Client) hears(master int, cmd *wire.Command, r wire.Reply) {
	now := c.World.Now
	c.sized(master, cmd, r)
	if cmd.Op == wire.OpAcquire || cmd.Op == wire.OpAsk {
		c.debts.answered(master, cmd, r)
	}
	if r.Err != nil && cmd.Op == wire.OpExtend && errors.Is(r.Err, node.ErrSilent) {
		c.Blame("a master that does not answer is not asked to extend what is held")
	}
	switch cmd.Op {
	case wire.OpCommit:
		if c.Resizing != nil && cmd.Script == wire.ScriptPermitResize && r.Err == nil && r.Value == int64(1) {
			c.Resizing.granted++
		}
	case wire.OpExtend:
		cl := c.claimOf(cmd.Args[0])
		if cl == nil || cl.extension.cmd != cmd {
			return
		}
		x := &cl.extension
		if x.count(extends(r), now) {
			x.counts = cl.Hold.Valid() && x.clock.Now().Before(x.half)
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
	case (r.Value == int64(1) || wire.IsWanted(r)) && !r.Young:
		return quorum.Granted
	case r.Value == int64(0) || r.Value == int64(-1):
		return quorum.Refused
	}
	return quorum.Failed
}

// Blame reports what the client did wrong.
func (c *Client) Blame(what string) {
	c.check.Report(tally.Violation{Kind: tally.Custom, What: c.Host.Name + ": " + what, Clients: []int{c.Index}})
}

// claimOf returns the hold of a client that masters store by that value, or nil.
func (c *Client) claimOf(value string) *Claim {
	for _, cl := range slices.Backward(c.check.Claims) { // a cached lock has several with this value
		if cl.Client == c && cl.Value == value {
			return cl
		}
	}
	return nil
}

// Gives notes what the client sends to a master.
func (c *Client) Gives(master int, cmd *wire.Command) {
	c.asksForRequests(cmd)
	if len(cmd.Args) == 0 {
		return // a naive lock, or a scenario that deletes without comparing
	}
	c.sends(master, cmd)
	c.keeps(cmd)
	c.asksForPermits(cmd)
	c.debts.owes(master, cmd)
	c.Asked++
	switch cmd.Op {
	case wire.OpRelease:
		c.Released++
	case wire.OpExtend:
		if c.Preemption.Every == 0 { // or it may have begun long ago
			c.renews(cmd)
		}
	case wire.OpRepair:
		if c.Preemption.Every == 0 {
			c.repairs(cmd)
		}
	}
}

// repairs looks whether a lease is put back that has ended, or a lease for reading as one for
// writing: a master that gets it back would keep other readers out.
func (c *Client) repairs(cmd *wire.Command) {
	cl := c.claimOf(cmd.Args[0])
	switch {
	case cl == nil:
	case !cl.Hold.Valid():
		c.Blame(fmt.Sprintf("a lease of %q that has ended is put back", cl.Names[0]))
	case cl.shared() && cmd.Script != wire.ScriptReadRepair:
		c.Blame(fmt.Sprintf("a lease of %q that reads is put back as a writer's", cl.Names[0]))
	}
}

// renews looks whether the lease may be extended.
func (c *Client) renews(cmd *wire.Command) {
	if c.Unlocked[cmd.Args[0]] {
		delete(c.Unlocked, cmd.Args[0])
		c.Blame("a lease is renewed that was unlocked")
	}
}

func milliseconds(text string) time.Duration {
	ms, _ := strconv.Atoi(text)
	return time.Duration(ms) * time.Millisecond
}

// asksFor notes for how long a master is asked to keep something.
func (c *Client) asksFor(cmd *wire.Command) {
	ttl := time.Duration(0)
	switch {
	case cmd.Name == "SET":
		ttl = milliseconds(cmd.Args[3])
	case cmd.Script == wire.ScriptAsk, cmd.Script == wire.ScriptFair:
		ttl = milliseconds(cmd.Args[2]) // behind the ticket
	case len(cmd.Args) > 1:
		ttl = milliseconds(cmd.Args[1])
	}
	c.longest[cmd.Args[0]] = max(c.longest[cmd.Args[0]], ttl)
}

// worth looks whether a release is kept for as long as its master may keep the key.
func (c *Client) worth(cmd *wire.Command) {
	if most := c.longest[cmd.Args[0]]; cmd.Keep < most {
		c.longest[cmd.Args[0]] = 0
		c.Blame("a release is worth " + plan.Short(cmd.Keep).String() + ", and what it deletes may be kept for " + plan.Short(most).String())
	}
}
