package redlock

import (
	"context"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// ForceUnlock takes the lock of that name away from its holder, which may be a client
// of another library: every master deletes the values, readers and permits that any of
// them stores now. A client that takes the lock meanwhile keeps it.
//
// The holder finds out at its next renewal, up to a third of its TTL later. Until then
// it may go on working while another client has the lock. So make sure that it has
// ended first; a holder that crashed loses its lock by itself after its TTL.
// ForceUnlock returns what it found, and ErrNoQuorum when too few masters answered.
func (c *Client) ForceUnlock(ctx context.Context, name string) (Holder, error) {
	found, err := c.Inspect(ctx, name)
	if err != nil {
		return found, err
	}
	told := map[string]bool{}
	for _, v := range found.Nodes {
		if v.Value != "" && !told[v.Value] {
			told[v.Value] = true
			if err := c.force(name, found.holding(c, name), v.Value); err != nil {
				return found, err
			}
		}
		for _, s := range v.Shares {
			if told[s.Value] {
				continue
			}
			told[s.Value] = true
			if err := c.force(name, s.holding(c, name), s.Value); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// holding is the kind of a lock that one client has alone.
func (h *Holder) holding(c *Client, name string) kind {
	if h.Kind == "read-write" {
		return c.readWrite(name).writers(name)
	}
	return newExclusive(c.opt.prefix, name)
}

// holding is the kind of a lock that is shared.
func (s *Share) holding(c *Client, name string) kind {
	if s.Slots == nil {
		return c.readWrite(name).readers(name)
	}
	return &semaphore{name: name, keys: node.PermitsOf(c.opt.prefix, name)}
}

// force has every node delete a value, and wake those who wait for it.
func (c *Client) force(name string, k kind, value string) error {
	l, cl := c.lock(name, k, nil), k.claim()
	cmd := l.release(cl, value, l.opt.ttl)
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: cl, Since: c.watch.Now()})
	defer r.Free()
	c.seams.Wait(context.Background(), r.Ready()) // the round ends by itself
	if r.Tally().Outcome() != quorum.Won {
		return l.fail("unlock", l.closedOr(ErrNoQuorum), r)
	}
	return nil
}
