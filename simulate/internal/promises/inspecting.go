package promises

import (
	"context"
	"time"

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

// A client that looks for the leader sees a token that a majority of the masters reported. That
// need not be the token of the lease yet: a leader that finds a higher token among its grants
// has the other masters count up to that token.

// leading is the leader that a master reported to a client. A leader is known by its client and
// by when it asked to lead, in ms by its own clock: its value is not passed on.
type leading struct {
	client string
	since  int64
	token  uint64
}

// tellsLeader notes the answer of a master to a client that looks for the leader. A command
// that arrives over a closed connection belongs to an earlier look.
func (k *checker) tellsLeader(m *fleet.Master, by *Client, cmd *wire.Command, closed bool) {
	if cmd.Script != wire.ScriptLeader || closed {
		return
	}
	lock, counter := cmd.Keys[0], cmd.Keys[2]
	by.told[m.Index] = leading{}
	if e := m.Keys.Find(lock); e != nil {
		client, _, since := values.Parse(e.Value)
		by.told[m.Index] = leadingOf(client, since, uint64(m.Keys.Counter(counter)))
	}
}

func leadingOf(client string, since time.Time, token uint64) leading {
	return leading{client, since.UnixMilli(), token}
}

// Agreed looks whether the masters have agreed on the token of a leader that is seen.
func (p *Caller) Agreed(l redlock.Leader) {
	n, sees := 0, leadingOf(l.Client, l.Since, l.Token)
	for _, told := range p.Client.told {
		if told.client == sees.client && told.since == sees.since && told.token >= sees.token {
			n++
		}
	}
	p.Check(tally.LeaderAgreed, n >= quorum.Size(len(p.Client.Masters)),
		"%s sees %+v, and %d of %d masters have told it so", p.Name(), l, n, len(p.Client.Masters))
}
