package promises

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// A master is kept from voting only for a reason: it lost its memory, or may have, or its
// clock was wrong. And no longer than promised: until the longest lease that it may have
// forgotten is over.

// keptOut is called when a client sends no vote to a master because it does not believe
// it. Nothing that the client says of the reason is looked at.
func (k *checker) keptOut(l *fleet.Link) {
	t, m, c := k.scene, l.Master, l.Client
	if l.Kept || !m.Remarked || m.Keys.Replica || t.Config.Rung != nil || t.Apart() {
		return // no client has looked since its memory loss, or can look
	}
	together := together(l)
	limit := together + compares
	misled, behind := t.misled(), t.wrongClocks()
	if behind >= 0 && !t.onlyBehind(l, misled) {
		misled = max(misled, behind)
	}
	reason := max(m.Marked, misled)
	if !reachesAll(c) || t.anotherRestarted(m) { // its offsets may name no master in reach (S63)
		reason = max(reason, 0)
	}
	if m.Restarted() { // no memory is older than the offsets of its clock (S74)
		limit = max(limit, t.longestHold()+looks)
	}
	if reason >= 0 {
		// The offsets of its clock may name a master that the client could look at only later.
		seen := max(reason, lastBack(c))
		if l.Vague >= reason {
			seen += fleet.Heartbeat // what that look left open may be one more step, until the next one (S48)
		}
		seen = max(seen, t.vagueReturn(m, reason))
		if behind >= 0 {
			seen += settles // a clock that went back is not compared with before
		}
		limit = max(limit, seen+max(t.longestHold(), settles)+looks)
	}
	if behind >= 0 {
		limit = max(limit, max(behind, together)+settles+looks)
		if behind <= m.Marked+t.longestHold()+looks {
			limit = max(limit, behind+t.longestHold()+looks) // a quarantine begins anew (S77)
		}
	}
	if now := t.World.Now; now > limit && compared(c) >= quorum.Size(len(c.Links)) {
		l.Kept = true // reported once
		k.Report(tally.Violation{
			Kind:    tally.KeptOut,
			What:    fmt.Sprintf("%s lets %s not vote, which has forgotten nothing for too long, and all clocks were right for as long", c.Host.Name, m.Host.Name),
			Clients: []int{c.Index},
		})
	}
}

const (
	compares = 200 * time.Millisecond // a client that begins compares the clocks of a quorum first
	looks    = 3 * time.Second        // for a look, which may be answered late
	settles  = 2 * guard.HeardWithin  // a master whose clock was set back waits until messages from before are too old (S59)
)

// together is since when nothing keeps a client from looking at a master. A client that could not
// look for a while looks again with the next heartbeat, before the master votes. Code that is stopped in
// the middle may be handling an answer to a look, until when no further look is sent.
func together(l *fleet.Link) time.Duration {
	if !l.Greeted || l.Disturbed() || l.Master.Host.Stopped() || l.Client.Host.Rests() {
		return world.Forever
	}
	return max(l.Since, max(l.Client.Host.Resumed, l.Master.Host.Resumed, l.Master.Answers, l.Wire.Mended, l.Rested)+fleet.Heartbeat)
}

// lastBack is since when nothing keeps a client from looking at the master that came last, of those
// it can look at.
func lastBack(c *fleet.Client) (last time.Duration) {
	for _, l := range c.Links {
		if l, ok := l.(*fleet.Link); ok && together(l) < world.Forever {
			last = max(last, together(l))
		}
	}
	return last
}

// vagueReturn returns until when a client may tell of one more step of a master's clock: one that came back after
// the clock was wrong, and whose look left open where the clock is (S48).
func (t *Scene) vagueReturn(m *fleet.Master, wrong time.Duration) (until time.Duration) {
	for _, c := range t.Clients {
		for _, l := range c.Links {
			if l, ok := l.(*fleet.Link); ok && l.Master == m && l.Vague >= wrong && together(l) >= wrong && together(l) < world.Forever {
				until = max(until, l.Vague+fleet.Heartbeat)
			}
		}
	}
	return until
}

// compared returns how many masters the client could look at for long enough to compare their clocks.
func compared(c *fleet.Client) (n int) {
	for _, l := range c.Links {
		if l, ok := l.(*fleet.Link); ok && c.World.Now > together(l)+compares {
			n++
		}
	}
	return n
}

// wrongClocks returns until when, in true time, any clock was wrong. A clock that was set stays
// wrong for clients that compare it with other clocks.
func (t *Scene) wrongClocks() (until time.Duration) {
	until = t.misled()
	for _, m := range t.Masters {
		until = max(until, m.Host.Clock.WrongUntil())
	}
	return until
}

// misled is wrongClocks without the masters' clocks that were only set back, or ran slow. To a
// client whose own clock is slow all masters' seem fast.
func (t *Scene) misled() (until time.Duration) {
	until = -world.Forever
	for _, m := range t.Masters {
		until = max(until, m.Host.Clock.MisledUntil())
	}
	for _, c := range t.Clients {
		until = max(until, c.Host.Clock.WrongUntil())
	}
	return until
}

// twoWrong reports whether a master's clock and another clock are wrong, or were recently: no promise
// is made where two clocks are wrong at the same time.
func (t *Scene) twoWrong(m *fleet.Master) bool {
	wrong := func(m *fleet.Master) bool { return m.Host.Clock.WrongUntil() >= t.World.Now-t.longestHold()-looks }
	return wrong(m) && slices.ContainsFunc(t.Masters, func(other *fleet.Master) bool { return other != m && wrong(other) })
}

// onlyBehind reports whether no clock was wrong but those of masters which were set back or ran
// slow, one of them or all alike, and the client knows all masters. Such a clock keeps keys for
// longer, and its master out only until all clients have seen it (S59, L37). A client that
// reaches few masters may take a right clock for the wrong one.
func (t *Scene) onlyBehind(l *fleet.Link, misled time.Duration) bool {
	if misled >= 0 {
		return false
	}
	c, wrong := l.Client, 0
	low, high := t.Masters[0].Host.Clock.WallNow(), t.Masters[0].Host.Clock.WallNow()
	for _, m := range t.Masters {
		if m.Host.Clock.WrongUntil() >= 0 {
			wrong++
		}
		low, high = min(low, m.Host.Clock.WallNow()), max(high, m.Host.Clock.WallNow())
	}
	return reachesAll(c) && (wrong == 1 || high-low < alike)
}

// reachesAll reports whether the client could look at all masters for long enough to compare their
// clocks.
func reachesAll(c *fleet.Client) bool { return compared(c) == len(c.Links) }

// anotherRestarted reports whether one of the other masters has restarted: it may be the only one that
// the offsets of this one name.
func (t *Scene) anotherRestarted(m *fleet.Master) bool {
	return slices.ContainsFunc(t.Masters, func(other *fleet.Master) bool { return other != m && other.Restarted() })
}

// alike is how far clocks may differ that are alike.
const alike = 100 * time.Millisecond

// longestHold is how long the most careful client keeps a master from voting.
func (t *Scene) longestHold() (hold time.Duration) {
	for i := range t.Clients {
		hold = max(hold, t.Config.Guard(i).Hold)
	}
	return hold
}
