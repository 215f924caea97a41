// Package weaker takes protections away from a client, by changing what it sends to its
// masters and what they answer. Production code knows nothing of it: what cannot be taken
// away from outside is a switch in package seam.
package weaker

import (
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// Lacks says which protections a client lacks.
type Lacks struct {
	Repair      bool // masters that lost the key get it back (S18)
	OwnKeysOnly bool // an extension makes no key anew (S19)
	Comparing   bool // a release deletes the key only if the value is its own (S22)
	Quorum      bool // a reader needs a quorum, and not one master alone (S40)
	WallClock   bool // elapsed time is what the wall clock says, if that is more (S12)
}

// Client changes the commands of one client. The zero Client changes none. It is for the
// goroutine that runs its schedule alone.
type Client struct {
	Lacks Lacks
	reads map[string]bool // values that a master has let read
}

// Do gives a command to a master by send, as the client would that lacks the protections.
func (c *Client) Do(cmd *node.Command, done func(node.Reply), send func(*node.Command, func(node.Reply))) {
	switch {
	case c.Lacks == Lacks{}:
	case cmd.Op == node.OpRepair && c.Lacks.Repair:
		done(node.Reply{Err: &node.Error{Op: cmd.Op, Err: node.ErrDown}})
		return
	case cmd.Op == node.OpExtend && c.Lacks.OwnKeysOnly:
		send(cmd, func(r node.Reply) { c.revive(cmd, r, done, send) })
		return
	case cmd.Op == node.OpRelease && c.Lacks.Comparing:
		cmd = &node.Command{Op: cmd.Op, Name: "DEL", Keys: cmd.Keys, Keep: cmd.Keep}
	case cmd.Script == node.ScriptRead && c.Lacks.Quorum:
		done = c.lets(cmd.Args[0], done)
	}
	send(cmd, done)
}

// revive takes a key for extended that is absent, and makes it anew.
func (c *Client) revive(cmd *node.Command, r node.Reply, done func(node.Reply), send func(*node.Command, func(node.Reply))) {
	if state, ok := node.KeyStateOf(r); !ok || state != node.Absent {
		done(r)
		return
	}
	ttl, err := time.ParseDuration(cmd.Args[1] + "ms")
	if err != nil {
		panic("weaker: an extension without a TTL: " + err.Error())
	}
	done(node.Reply{Value: int64(node.Ours)})
	send(node.Repair(cmd.Keys[0], cmd.Args[0], ttl), func(node.Reply) {})
}

// lets has every master that answers grant a reader that one of them has let in.
func (c *Client) lets(value string, done func(node.Reply)) func(node.Reply) {
	return func(r node.Reply) {
		_, refused := node.AskRefusal(r)
		switch {
		case node.Granted(r):
			if c.reads == nil {
				c.reads = map[string]bool{}
			}
			c.reads[value] = true
		case refused && c.reads[value]:
			r.Value = "OK"
		}
		done(r)
	}
}

// Clock is what a client measures time with: a clock of both readings, of which it may
// lack one.
type Clock interface {
	clock.Clock
	drift.Monotonic
}

// Clock returns the clock that the client reads, which has c.
func (c *Client) Clock(has Clock) Clock {
	if c.Lacks.WallClock {
		return steady{has}
	}
	return has
}

// steady is a clock whose wall clock moves as the monotonic one does.
type steady struct{ Clock }

// Now returns the time on the wall clock.
func (s steady) Now() time.Time { return time.Unix(1893456000, 0).Add(s.Monotonic()) }
