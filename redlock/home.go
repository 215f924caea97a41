package redlock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
)

// home is where a lock of Groups is.
type home struct {
	groups *Groups
	names  []string
	on     func(c *Client) *lock // the lock, with that client
	last   atomic.Pointer[lock]  // that was used
}

func (g *Groups) homeOf(on func(c *Client) *lock, names ...string) *home {
	return &home{groups: g, names: names, on: on}
}

// lock returns the lock with the client whose group has it now. A client that rests knows only an old map.
func (h *home) lock(ctx context.Context) (*lock, error) {
	for _, c := range h.groups.clients {
		c.rouse(ctx)
	}
	c, err := h.groups.client(h.names)
	if err != nil {
		return nil, &Error{Op: "lock", Name: strings.Join(h.names, ","), Err: err}
	}
	if l := h.last.Load(); l != nil && l.client == c {
		return l, nil
	}
	l := h.on(c)
	h.last.Store(l)
	return l, nil
}

// once has take take the lock where it is now.
func (h *home) once(ctx context.Context, take func(*lock, context.Context) (*Lease, error)) (*Lease, error) {
	l, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	return take(l, ctx)
}

// untilMoved is once, for as long as the names stay where they are: then it returns ErrMoved.
func (h *home) untilMoved(ctx context.Context, take func(*lock, context.Context) (*Lease, error)) (*Lease, error) {
	l, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	return h.groups.during(ctx, l.client, h.names, func(ctx context.Context) (*Lease, error) { return take(l, ctx) })
}

// until is untilMoved, again and again until the names are in a group.
func (h *home) until(ctx context.Context, take func(*lock, context.Context) (*Lease, error)) (*Lease, error) {
	for {
		lease, err := h.untilMoved(ctx, take)
		if !errors.Is(err, ErrMoved) || !h.groups.moves(h.names) {
			return lease, err
		}
		c := h.groups.clients[0]
		if failed := c.pause(ctx, min(c.opt.nodeTimeout, c.opt.retryInterval)); failed != nil {
			e := &Error{Op: "lock", Name: strings.Join(h.names, ","), Err: failed, last: ErrMoved}
			return nil, e
		}
	}
}
