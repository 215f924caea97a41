package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quorumlock/quorumlock/internal/spread"
)

// home finds the client that has a lock of Groups now.
type home struct {
	groups *Groups
	names  []string
	on     func(c *Client) *lock // the lock, with that client
	last   atomic.Pointer[lock]  // with the client that had it last
}

func (g *Groups) homeOf(on func(c *Client) *lock, names ...string) *home {
	return &home{groups: g, names: names, on: on}
}

// lock returns the lock with the client whose group has it now. A client that rests knows only an old map;
// one that does not looks at its masters every second, those that it can reach.
func (h *home) lock(k *call) (*lock, error) {
	c, err := h.groups.client(h.names)
	if err != nil || c.rest.resting.Load() {
		rouseAll(k.ctx, h.groups.clients)
		c, err = h.groups.client(h.names)
	}
	if err != nil && h.groups.clients[0].closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return nil, &Error{Op: "lock", Name: strings.Join(h.names, ","), Err: err}
	}
	l := h.last.Load()
	if l == nil || l.client != c {
		l = h.on(c)
		h.last.Store(l)
	}
	k.at = l
	return l, nil
}

// way is how a call takes a lock: once, or waiting for it.
type way func(*lock, *call) (*Lease, error)

// once takes the lock where it is now. A group without a quorum may be gone: then only the masters of the others
// tell where the lock is.
func (h *home) once(ctx context.Context, take way) (*Lease, error) {
	return h.observed(ctx, func(k *call) (*Lease, error) {
		l, err := h.lock(k)
		if err != nil {
			return nil, err
		}
		lease, err := take(l, k)
		if errors.Is(err, ErrNoQuorum) {
			rouseAll(ctx, h.groups.clients)
			if now, failed := h.lock(k); failed == nil && now != l {
				k.leave(l)
				return take(now, k)
			}
		}
		return lease, err
	})
}

// until takes the lock as soon as it can, in whatever group that is.
func (h *home) until(ctx context.Context, take way) (*Lease, error) {
	return h.observed(ctx, func(k *call) (*Lease, error) {
		for {
			lease, err := h.untilMoved(k, take)
			if !errors.Is(err, ErrMoved) || !h.groups.mayFind(h.names) {
				return lease, err
			}
			c := h.groups.clients[0]
			if ended := c.pause(ctx, min(c.opt.nodeTimeout, c.opt.retryInterval)); ended != nil {
				return nil, &Error{Op: "lock", Name: strings.Join(h.names, ","), Err: ended, last: ErrMoved}
			}
		}
	})
}

// untilMoved takes the lock while it stays where it is: then it returns ErrMoved.
func (h *home) untilMoved(k *call, take way) (*Lease, error) {
	l, err := h.lock(k)
	if err != nil {
		return nil, err
	}
	lease, err := h.groups.during(k.ctx, "lock", l.client, h.names, func(ctx context.Context) (*Lease, error) {
		caller := k.ctx
		defer func() { k.ctx = caller }()
		k.ctx = ctx
		return take(l, k)
	})
	if errors.Is(err, ErrMoved) {
		k.leave(l)
	}
	return lease, err
}

// leave ends the wait in the group of l. Each client may have an observer of its own, which counts waiters.
func (k *call) leave(l *lock) {
	if k.waited {
		l.observe(Event{Kind: LockMoved})
		k.waited = false
	}
}

// observed has the observer told once how a call ended, however often the names moved meanwhile.
func (h *home) observed(ctx context.Context, take func(k *call) (*Lease, error)) (*Lease, error) {
	k, watch := call{ctx: ctx}, h.groups.clients[0].watch
	began := watch.Now()
	lease, err := take(&k)
	l := k.at
	if lease != nil {
		l = lease.lock
	} else if l == nil {
		l = h.on(h.groups.clientOrFirst(h.names...))
	}
	k.since, k.before = l.client.watch.Now(), watch.Since(began)
	l.observeCall(&k, lease, err)
	return lease, err
}

// mayFind reports whether Lock may find the names in one group of ours later: they move, or have just moved.
func (g *Groups) mayFind(names []string) bool {
	m := g.newest.Load()
	groups := m.Next
	if m.Settled() {
		groups = m.Groups
	}
	owner := common(names, func(name string) string { return spread.Highest(groups, name) })
	return slices.ContainsFunc(g.clients, func(c *Client) bool { return c.opt.group.name == owner })
}
