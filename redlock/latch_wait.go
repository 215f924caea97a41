package redlock

import (
	"context"
	"errors"
	"slices"

	"github.com/quorumlock/quorumlock/drift"
)

// Those of one client who wait for the same latch share a lookout: the first of them looks
// at the masters for all, so a thousand look no more often than one (L48).
//
// It looks again when as many messages have come as arrivals are missing, since each
// message reports one arrival at one master; when messages may have been missed; and
// every now and then.

// lookout is shared by the waiters for one latch. The mutex of the client guards it.
type lookout struct {
	waiters []*latchWaiter // the first looks
	news    *news          // the messages that it follows
	last    error          // what its last look came to
}

type latchWaiter struct {
	need  int           // arrivals
	ready chan struct{} // holds one wake-up: it is let through, or looks from now on
	open  bool          // it is let through
}

// Wait returns when enough ids have arrived, or ctx ends.
func (l *Latch) Wait(ctx context.Context) error {
	_, err := l.groups.during(ctx, "wait", l.lock.client, []string{l.lock.name}, func(ctx context.Context) (*Lease, error) {
		return nil, l.wait(ctx)
	})
	return err
}

// wait is Wait while the name stays in its group.
func (l *Latch) wait(ctx context.Context) error {
	c := l.lock.client
	if err := l.lock.check(ctx, "wait"); err != nil {
		return err
	}
	o, w := c.joinLookout(l.keys.Channel, l.count)
	defer c.leaveLookout(l.keys.Channel, o, w)
	for !c.looks(o, w) {
		err := c.seams.Wait(ctx, w.ready)
		open, last := c.told(o, w)
		switch {
		case open:
			return nil
		case c.closed.Load():
			err = ErrClosed
		case err != nil:
			err = ended(ctx)
		default:
			continue
		}
		return &Error{Op: "wait", Name: l.lock.name, Err: err, last: last}
	}
	return l.lookFor(ctx, o, w)
}

// lookFor looks at the masters for all who wait, until w is let through.
func (l *Latch) lookFor(ctx context.Context, o *lookout, w *latchWaiter) error {
	c := l.lock.client
	n := c.follow(l.keys.Channel, latchLook)
	defer n.end()
	c.mu.Lock()
	o.news = n
	c.mu.Unlock()
	var united drift.Instant // when all arrivals were read last
	for first := true; ; first = false {
		heard := n.listen()
		s, err := l.look(ctx)
		n.every = latchLook
		if err == nil && !s.agreed && s.least < l.count {
			if first || c.watch.Since(united) >= latchUnite {
				s.number, err = l.unite(ctx)
				s.least, united = s.number, c.watch.Now()
			} else {
				n.every = latchUnite
			}
		}
		missing := 1
		if err == nil {
			missing = c.letThrough(o, s)
		}
		if open, _ := c.told(o, w); open {
			return nil
		}
		last := reason(err)
		if last == ErrClosed || errors.Is(last, ErrMoved) {
			return &Error{Op: "wait", Name: l.lock.name, Err: last}
		}
		c.mu.Lock()
		o.last = last
		c.mu.Unlock()
		n.expect(heard + missing)
		if err := n.wait(ctx); err != nil {
			return &Error{Op: "wait", Name: l.lock.name, Err: err, last: last}
		}
	}
}

// joinLookout adds a waiter for so many arrivals.
func (c *Client) joinLookout(latch string, need int) (*lookout, *latchWaiter) {
	w := &latchWaiter{need: need, ready: make(chan struct{}, 1)}
	c.mu.Lock()
	o := c.lookouts[latch]
	if o == nil {
		if c.lookouts == nil {
			c.lookouts = map[string]*lookout{}
		}
		o = &lookout{}
		c.lookouts[latch] = o
	}
	o.waiters = append(o.waiters, w)
	n := o.news
	c.mu.Unlock()
	if n != nil {
		n.wake() // enough may have arrived for this one
	}
	return o, w
}

// leaveLookout takes a waiter out. If that waiter was the first, the next one looks from
// now on.
func (c *Client) leaveLookout(latch string, o *lookout, w *latchWaiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(o.waiters, w)
	o.waiters = slices.Delete(o.waiters, i, i+1)
	switch {
	case len(o.waiters) == 0:
		delete(c.lookouts, latch)
	case i == 0:
		o.news = nil
		o.waiters[0].notify()
	}
}

// looks reports whether a waiter looks for all.
func (c *Client) looks(o *lookout, w *latchWaiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return o.waiters[0] == w
}

// told reports whether a waiter is let through, and what the last look came to.
func (c *Client) told(o *lookout, w *latchWaiter) (open bool, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.open, o.last
}

// letThrough lets those through for whom enough have arrived. It returns how many must
// arrive before the next one is.
func (c *Client) letThrough(o *lookout, s sight) (missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range o.waiters {
		left := w.need - s.number
		if w.open = w.open || s.least >= w.need; w.open {
			w.notify()
		} else if missing == 0 || left < missing {
			missing = left
		}
	}
	return max(1, missing)
}

// notify wakes the waiter. The mutex is held.
func (w *latchWaiter) notify() {
	if len(w.ready) == 0 {
		w.ready <- struct{}{}
	}
}
