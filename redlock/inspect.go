package redlock

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// Holder is who holds a lock, as far as the nodes know.
type Holder struct {
	Held      bool          // a quorum of nodes stores the same value
	Value     string        // that value, Lease.Value of the holder
	Client    string        // the holder's client id, if it is a client of this library
	Metadata  string        // what the holder said of itself
	Remaining time.Duration // until the quorum's keys end, unless renewed
	Nodes     []NodeView    // what each node said, in the order of configuration
}

// NodeView is what one node knows of a lock.
type NodeView struct {
	Node      string
	Value     string        // empty: the lock is free here
	Remaining time.Duration // negative: the key has no expiry
	Err       error         // why there is no answer, else nil
}

// Inspect asks every node who holds the lock of that name. It waits for all of
// them, at most one node timeout, and fails with ErrNoQuorum when too few
// answered. The answer is about a moment that has passed.
func (c *Client) Inspect(ctx context.Context, name string) (Holder, error) {
	l := c.lock(name, newExclusive(c.opt.prefix, name), nil)
	if err := l.check(ctx, "inspect"); err != nil {
		return Holder{}, err
	}
	r := c.panel.Survey(node.Inspect(c.opt.prefix + name))
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return Holder{}, l.fail("inspect", ended(ctx), r)
	}
	h := Holder{Nodes: make([]NodeView, len(c.panel.Nodes()))}
	answers := 0
	for i, b := range r.Ballots(nil) {
		h.Nodes[i] = viewOf(c.panel.Nodes()[i].Addr(), b)
		if h.Nodes[i].Err == nil {
			answers++
		}
	}
	need := quorum.Size(len(h.Nodes))
	if answers < need {
		return h, l.fail("inspect", l.closedOr(ErrNoQuorum), r)
	}
	h.decide(need)
	return h, nil
}

func viewOf(addr string, b quorum.Ballot) NodeView {
	v := NodeView{Node: addr, Err: errOf(b.Reply)}
	if v.Err != nil {
		return v
	}
	fields, ok := b.Reply.Value.([]any)
	if !ok || len(fields) != 2 {
		return v
	}
	if value, ok := fields[0].([]byte); ok {
		ms, _ := fields[1].(int64)
		v.Value, v.Remaining = string(value), time.Duration(ms)*time.Millisecond
	}
	return v
}

// decide finds the value that a quorum of nodes stores.
func (h *Holder) decide(need int) {
	for _, candidate := range h.Nodes {
		if candidate.Value == "" {
			continue
		}
		var left []time.Duration
		for _, v := range h.Nodes {
			if v.Value == candidate.Value {
				left = append(left, v.Remaining)
			}
		}
		if len(left) < need {
			continue
		}
		// The quorum is gone when fewer than need keys are left.
		slices.SortFunc(left, func(a, b time.Duration) int { return cmp.Compare(b, a) })
		h.Held, h.Value, h.Remaining = true, candidate.Value, left[need-1]
		h.Client, h.Metadata = parseValue(candidate.Value)
		return
	}
}

// parseValue takes apart a value made by Client.value: id/nonce/number, and
// behind a space the metadata. Values of other libraries have no parts.
func parseValue(value string) (client, metadata string) {
	id, metadata, _ := strings.Cut(value, " ")
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return "", ""
	}
	return parts[0], metadata
}
