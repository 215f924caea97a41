// Package weaker takes protections away from a client, by changing its commands to its masters
// and their answers. Production code knows nothing of this package. A protection that cannot be
// taken away from outside has a switch in package seam.
package weaker

import (
	"slices"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Lacks says which protections a client lacks.
type Lacks struct {
	Repair      bool // masters that lost the key get it back (S18)
	OwnKeysOnly bool // an extension makes no key anew (S19)
	Comparing   bool // a release deletes the key only if the value is its own (S22)
	Quorum      bool // a reader needs a quorum, and not one master alone (S40)
	WallClock   bool // elapsed time is what the wall clock says, if that is more (S12)
	Unnoticed   bool // a validity gives up what a master's clock may gain unnoticed (S47)
	OwnRate     bool // that our own clock is slow is noticed (S47, S60)
	Answers     bool // an extension counts when its masters have answered (S31)
	Discard     bool // an attempt that failed is released (L3)
	Raise       bool // a token counts when a majority has stepped to it (S30)
	Allowance   bool // a validity gives up what clocks may drift (S10)
	SameSlots   bool // a majority must have given the same slots (S29)
	Reported    bool // a held permit counts, whichever master knows it (S39)
	Majority    bool // half of the masters are too few (S16)
	FreshValue  bool // every acquisition has a value of its own (S20)
	Told        bool // a writer that turns reader stops writing before it asks the first master (S38)
	Young       bool // an extension counts only if the memory of its master is old enough (S35)
	Others      bool // a marker tells the longest restart guard, and the group (S5b, S14)
	InUse       bool // init declares no master new beside masters in use (S14d)

	// Of the fast transport only:
	Tickets     bool // a fair waiter is behind all that are queued, by the masters' clocks (L24, L41)
	VotesMarker bool // a vote counts only with the marker that the guard knows (S24)
	VotesTime   bool // a vote counts only if its master's clock has not stepped (S2b)
	Roles       bool // a vote counts only if its master was one all the time (S50)
	NoAge       bool // a memory without a marker has no age, whatever the uptime says (S33, S34)
}

// Seams returns the seams of a client.
func (l *Lacks) Seams(s seam.Seams) seam.Seams {
	if l.Majority {
		s.Quorum = func(nodes int) int { return nodes / 2 }
	}
	if l.Allowance {
		s.Budget = func(ttl time.Duration) time.Duration { return ttl }
	}
	if l.FreshValue {
		s.Number = func() uint64 { return 0 }
	}
	return s
}

// Pace returns how fast the masters' clocks run, as far as the client heeds it.
func (l *Lacks) Pace(known float64) float64 {
	if l.Allowance {
		return 1
	}
	return known
}

// Vote returns what the guard reads of a vote, with the marker that the guard knows.
func (l *Lacks) Vote(v Vote, known string) Vote {
	if l.VotesMarker {
		v.Marker = known
	}
	if l.VotesTime {
		v.At = time.Time{}
	}
	if l.Roles {
		v.Replica, v.Promotion = false, ""
	}
	return v
}

// Vote is what a master says of itself with a vote.
type Vote struct {
	Marker    string
	At        time.Time // by its clock
	Replica   bool
	Promotion string
}

// Look gives a guard the evidence, changed, for the verdict. first: no look has ended well yet.
func (l *Lacks) Look(g *guard.Guard, e guard.Evidence, first bool) guard.Verdict {
	stored := e.Marker
	if l.Roles {
		e.Promotion = ""
	}
	if l.NoAge && first && stored.RunID == "" && e.Uptime >= 0 {
		e.Marker = guard.NewMarker(e.RunID, e.Time.Add(-e.Uptime))
		e.Marker.New = true // else nothing proves its age (S74)
	}
	v := g.Look(e)
	if v.Over == e.Marker {
		v.Over = stored
	}
	return v
}

// Client changes the commands of one client. The zero Client changes none. It is for the
// goroutine that runs its schedule alone.
type Client struct {
	Lacks   Lacks
	Masters int
	Skew    float64        // of the clock that leases are counted by, if OwnRate lacks
	grants  map[string]int // how many masters have granted a value
}

// Do gives a command to a master by send, as the client would that lacks the protections.
func (c *Client) Do(cmd *wire.Command, done func(wire.Reply), send func(*wire.Command, func(wire.Reply))) {
	switch {
	case c.Lacks == Lacks{}:
	case cmd.Op == wire.OpRepair && c.Lacks.Repair:
		done(wire.Reply{Err: &wire.Error{Op: cmd.Op, Err: node.ErrDown}})
		return
	case cmd.Op == wire.OpExtend && c.Lacks.OwnKeysOnly:
		send(cmd, func(r wire.Reply) { c.revive(cmd, r, done, send) })
		return
	case cmd.Op == wire.OpRelease && c.Lacks.Comparing:
		cmd = &wire.Command{Op: cmd.Op, Name: "DEL", Keys: cmd.Keys, Keep: cmd.Keep}
	case cmd.Op == wire.OpExtend && c.Lacks.Young:
		done = old(done)
	case cmd.Op == wire.OpExtend && c.Lacks.Answers:
		done(wire.Reply{Value: int64(wire.Ours)})
		done = func(wire.Reply) {}
	case raises(cmd) && c.Lacks.Raise, cmd.Op == wire.OpRelease && c.Lacks.Discard && c.failed(cmd.Args[0]):
		done(wire.Reply{Value: int64(wire.Ours)})
		return
	case (cmd.Op == wire.OpAcquire || cmd.Op == wire.OpAsk) && c.Lacks.Discard:
		done = c.counts(cmd.Args[0], done)
	case cmd.Op == wire.OpCommit && cmd.Script == wire.ScriptPermitMove && c.Lacks.SameSlots:
		done(wire.Reply{Value: []any{[]byte(cmd.Args[2]), int64(0)}})
		return
	case c.Lacks.Reported:
		done = blank(5, 4, done) // the slots that others have, see wire.PermitGrant
	case c.Lacks.Tickets:
		done = blank(4, 3, done) // see wire.FairRefusal
	case cmd.Script == wire.ScriptRead && c.Lacks.Quorum:
		done = c.lets(cmd.Args[0], c.counts(cmd.Args[0], done))
	}
	send(cmd, done)
}

// old counts an extension by a young memory.
func old(done func(wire.Reply)) func(wire.Reply) {
	return func(r wire.Reply) {
		r.Young = false
		done(r)
	}
}

// revive takes a key for extended that is absent, and makes it anew.
func (c *Client) revive(cmd *wire.Command, r wire.Reply, done func(wire.Reply), send func(*wire.Command, func(wire.Reply))) {
	if state, ok := wire.KeyStateOf(r); !ok || state != wire.Absent {
		done(r)
		return
	}
	ttl, err := time.ParseDuration(cmd.Args[1] + "ms")
	if err != nil {
		panic("weaker: an extension without a TTL: " + err.Error())
	}
	done(wire.Reply{Value: int64(wire.Ours)})
	send(wire.Repair(cmd.Keys[0], cmd.Args[0], ttl), func(wire.Reply) {})
}

// lets has every master that answers grant a reader that one of them has let in.
func (c *Client) lets(value string, done func(wire.Reply)) func(wire.Reply) {
	return func(r wire.Reply) {
		if _, refused := wire.AskRefusal(r); refused && c.grants[value] > 0 {
			r.Value = "OK"
		}
		done(r)
	}
}

// counts counts the grants of a value.
func (c *Client) counts(value string, done func(wire.Reply)) func(wire.Reply) {
	if c.grants == nil {
		c.grants = map[string]int{}
	}
	c.grants[value] += 0
	return func(r wire.Reply) {
		if wire.Granted(r) {
			c.grants[value]++
		}
		done(r)
	}
}

// Hears counts a grant that comes in a message.
func (c *Client) Hears(message string) {
	said, ok := wire.ParseNotice(message)
	if _, counted := c.grants[said.Value]; ok && counted && said.Kind == wire.Given {
		c.grants[said.Value]++
	}
}

// failed reports whether an attempt has got the value at no majority.
func (c *Client) failed(value string) bool {
	n, counted := c.grants[value]
	return counted && n < quorum.Size(c.Masters)
}

// raises reports whether the command has a master step to a token.
func raises(cmd *wire.Command) bool {
	return cmd.Script == wire.ScriptFencedRaise || cmd.Script == wire.ScriptPermitRaise || cmd.Script == wire.ScriptMultiRaise
}

// blank takes a field from answers of so many fields.
func blank(fields, field int, done func(wire.Reply)) func(wire.Reply) {
	return func(r wire.Reply) {
		if f, ok := r.Value.([]any); ok && len(f) == fields {
			f = slices.Clone(f)
			f[field] = nil
			r.Value = f
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
	if c.Lacks.OwnRate {
		return skewed{has, &c.Skew}
	}
	return has
}

// steady is a clock whose wall clock moves as the monotonic one does.
type steady struct{ Clock }

// Now returns the time on the wall clock.
func (s steady) Now() time.Time { return time.Unix(1893456000, 0).Add(s.Monotonic()) }

// skewed is a clock that runs wrong, made from a clock that is right. So no comparison with the
// right clock shows the error.
type skewed struct {
	Clock
	by *float64
}

func (s skewed) off() time.Duration {
	return time.Duration(*s.by * float64(s.Clock.Monotonic()))
}

// Now returns the time on the wall clock.
func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.off()) }

// Monotonic returns the monotonic reading.
func (s skewed) Monotonic() time.Duration { return s.Clock.Monotonic() + s.off() }
