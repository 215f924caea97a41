package promises

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// This file checks when renewals are sent, and for how long a release is kept.

// paces are the times between the last renewals of a client that succeeded and the next
// ones, in thousandths of the TTL.
type paces struct {
	last [paced]int
	n    int
}

// paced is how many renewals in step rule out a coincidence: renewals are spread over a
// sixteenth of the TTL.
const paced = 16

// inStep is by how much they differ if they are not spread, for timers that ring
// together are early by up to a 512th of the TTL.
const inStep = 4

// took notes one more, and reports whether the last ones came in step.
func (p *paces) took(thousandths int) bool {
	p.last[p.n%paced] = thousandths
	p.n++
	lowest, highest := p.last[0], p.last[0]
	for _, t := range p.last {
		lowest, highest = min(lowest, t), max(highest, t)
	}
	return p.n >= paced && highest-lowest <= inStep
}

// punctually looks at when the library renews a lease of itself: not in step with
// others, so that ten thousand leases are not renewed in one burst, and after a renewal
// that found no quorum no sooner than its masters can bear, unless one of them is
// connected again (L45).
func (c *Client) punctually(cl *Claim) {
	before, clock := &cl.extension, c.Host.Clock
	if cl.Asked || before.cmd == nil || !before.decided || before.uneven != clock.Uneven || c.Host.Resumed > 0 || c.check.scene.doubtful() {
		return
	}
	if c.Back > before.own {
		return
	}
	ttl := milliseconds(before.cmd.Args[1])
	if before.granted >= before.need() {
		if c.paces.took(int((clock.Monotonic() - before.mono) * 1000 / ttl)) {
			c.paces = paces{}
			c.Blame("the last " + strconv.Itoa(paced) + " renewals came in step")
		}
		return
	}
	// The pause is at least half of a quarter of the time that was left.
	if gap, least := clock.Monotonic()-before.own, before.left/10-ttl/512-Punctual; gap < least {
		c.Blame("a lease is renewed again " + plan.Short(gap).String() + " after no quorum was found, with " + plan.Short(before.left).String() + " left")
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

// doubtful reports whether a master may have lost its memory, or seems to have lost it: then
// its leases are renewed immediately.
func (t *Scene) doubtful() bool {
	for _, m := range t.Masters {
		if m.Lapses > 0 || m.Host.Life > 0 || m.Host.Clock.Uneven > 0 {
			return true
		}
	}
	return t.Stats.Faults[plan.Rate] > 0
}
