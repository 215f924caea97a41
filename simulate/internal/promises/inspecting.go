package promises

import (
	"context"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Inspect reports the waiters that a quorum has queued. If masters differ in the ticket of a
// waiter, the highest ticket counts: the waiter settles on that ticket.

// inspection is an Inspect that is under way, and what each master has answered.
type inspection struct {
	key   string
	asked []int              // how often each was asked; more than once: by others, too
	told  []map[string]int64 // the tickets that each told of, by waiter
}

// Inspects calls Inspect for a lock, and checks the reported queue.
func (t *Scene) Inspects(p *Caller, a plan.Action) {
	name, c := a.LockNames()[0], p.Client
	in := &inspection{name, make([]int, len(c.Masters)), make([]map[string]int64, len(c.Masters))}
	c.inspecting = in
	var h redlock.Holder
	err := t.Ask(p, "Inspect", t.Config.NodeTimeout, func() (err error) {
		h, err = c.API.Inspect(context.Background(), name)
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
			p.Fail("%s is told that %s waits for %q, which %d of %d masters have queued", p.Name(), w.Client, name, at, len(w.Places))
		}
		if highest, ok := in.ticket(w); ok && c.inspecting == in && float64(w.Ticket) != float64(highest) { // Redis stores a float
			p.Fail("%s is told that %s waits for %q with the ticket %d, and the highest that a master told of is %d", p.Name(), w.Client, name, w.Ticket, highest)
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
func (c *Client) inspected(m *fleet.Master, cmd *wire.Command) {
	in := c.inspecting
	if in == nil || cmd.Script != wire.ScriptInspect || cmd.Keys[0] != in.key {
		return
	}
	in.asked[m.Index]++
	in.told[m.Index] = map[string]int64{}
	for _, queued := range m.Keys.Members(cmd.Keys[2]) {
		in.told[m.Index][queued.Member] = queued.Score
	}
}

// A client that looks for the leader sees a token that a majority of the masters reported, or where
// they differ, the lowest of theirs that is above the token of the leader before (L69).

// leading is a leader that a master reported to a client. A leader is known by its client and
// by when it asked to lead, in ms by its own clock: its value is not passed on.
type leading struct {
	client string
	since  int64
}

// tellsLeader notes the answer of a master to a client that looks for the leader: the highest token
// that it told. A later answer does not take it back, because several looks may be under way.
func (k *checker) tellsLeader(m *fleet.Master, by *Client, cmd *wire.Command, closed bool) {
	if cmd.Script != wire.ScriptLeader || closed {
		return
	}
	if e := m.Keys.Find(cmd.Keys[0]); e != nil {
		client, _, since := values.Parse(e.Value)
		l, told := leading{client, since.UnixMilli()}, by.told[m.Index]
		told[l] = max(told[l], uint64(m.Keys.Counter(cmd.Keys[2])))
	}
}

// Agreed looks whether a majority of the masters have told of a leader that is seen, and one of them
// of its token or a higher one.
func (p *Caller) Agreed(l redlock.Leader) {
	n, highest := 0, uint64(0)
	for _, told := range p.Client.told {
		if token, ok := told[leading{l.Client, l.Since.UnixMilli()}]; ok {
			n, highest = n+1, max(highest, token)
		}
	}
	p.Check(tally.LeaderAgreed, n >= quorum.Size(len(p.Client.Masters)) && highest >= l.Token,
		"%s sees %+v, and %d of %d masters have told of that leader, with tokens up to %d", p.Name(), l, n, len(p.Client.Masters), highest)
}
