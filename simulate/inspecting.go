package simulate

import (
	"context"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// Inspect tells of those whom a quorum has queued. Where masters differ in the ticket of
// a waiter, the highest counts: it is the one that the waiter settles on.

// inspection is an Inspect that is under way, and what each master has answered.
type inspection struct {
	key   string
	asked []int              // how often each was asked; more than once: by others, too
	told  []map[string]int64 // the tickets that each told of, by waiter
}

// inspects asks who holds the lock, and who waits for it.
func (t *trial) inspects(p *Process, a Action) {
	name, c := a.names()[0], p.client
	in := &inspection{name, make([]int, len(c.masters)), make([]map[string]int64, len(c.masters))}
	c.inspecting = in
	var h redlock.Holder
	err := t.ask(p, "Inspect", t.config.nodeTimeout, func() (err error) {
		h, err = c.api.Inspect(context.Background(), name)
		return err
	})
	if err != nil {
		return
	}
	for _, w := range h.Queue {
		at := 0
		for _, place := range w.Places {
			at += min(place, 1)
		}
		if at < quorum.Size(len(w.Places)) {
			p.Fail("%s is told that %s waits for %q, which %d of %d masters have queued", p.name, w.Client, name, at, len(w.Places))
		}
		if highest, ok := in.ticket(w); ok && c.inspecting == in && float64(w.Ticket) != float64(highest) { // Redis stores a float
			p.Fail("%s is told that %s waits for %q with the ticket %d, and the highest that a master told of is %d", p.name, w.Client, name, w.Ticket, highest)
		}
	}
}

// ticket returns the highest ticket of a waiter that the masters have told of.
func (in *inspection) ticket(w redlock.Waiter) (highest int64, ok bool) {
	waiter, _ := masters.SplitValue(w.Value)
	for i, place := range w.Places {
		if place == 0 {
			continue
		}
		if in.asked[i] != 1 {
			return 0, false
		}
		highest = max(highest, in.told[i][waiter])
	}
	return highest, true
}

// inspected notes what a master has answered to an Inspect.
func (c *client) inspected(m *master, cmd *wire.Command) {
	in := c.inspecting
	if in == nil || cmd.Script != wire.ScriptInspect || cmd.Keys[0] != in.key {
		return
	}
	in.asked[m.index]++
	in.told[m.index] = map[string]int64{}
	for _, queued := range m.keys.Members(cmd.Keys[2]) {
		in.told[m.index][queued.Member] = queued.Score
	}
}
