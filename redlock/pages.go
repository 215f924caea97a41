package redlock

import (
	"context"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// pages are the pages of Inspect after the first, at all masters that have more than one.
type pages struct {
	client *Client
	name   string
	ready  chan struct{} // holds one wake-up: all pages have been read, or time is over

	mu    seam.Mutex
	of    []*further // by master; nil: it has no more
	left  int        // masters that have more
	late  bool       // what comes now does not count
	timer drift.Timer
}

// further is what one master tells on its pages after the first.
type further struct {
	shares []wire.Share
	done   bool
	err    *wire.Error
}

// readOn reads the pages after the first. Each may take a node timeout.
func (c *Client) readOn(ctx context.Context, name string, first []quorum.Ballot) ([]*further, error) {
	p := &pages{client: c, name: name, ready: make(chan struct{}, 1), of: make([]*further, len(first))}
	p.mu.In(c.seams.Steps)
	from := make([]string, len(first))
	for i, b := range first {
		if seen, ok := wire.InspectedOf(b.Reply); ok && seen.Ended != "" {
			p.of[i], from[i] = &further{}, seen.Ended
			p.left++
		}
	}
	if p.left == 0 {
		return p.of, nil
	}
	c.timers.Set(&p.timer, c.opt.nodeTimeout, p)
	defer c.timers.Cancel(&p.timer)
	for i, at := range from {
		if at != "" {
			p.ask(i, at)
		}
	}
	err := c.seams.Wait(ctx, p.ready)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = true // the masters are asked for no more pages
	if err != nil {
		return nil, ended(ctx)
	}
	for i, f := range p.of {
		if f != nil && !f.done {
			f.err = &wire.Error{Node: c.members.Nodes()[i].Addr(), Op: wire.OpRead, Err: node.ErrTimeout}
		}
	}
	return p.of, nil
}

// ask reads the page of a master that begins where the one before ended.
func (p *pages) ask(i int, ended string) {
	c := p.client
	c.members.Nodes()[i].Do(wire.Inspect(c.opt.prefix, p.name, ended), func(r wire.Reply) {
		seen, ok := wire.InspectedOf(r)
		p.mu.Lock()
		f := p.of[i]
		if p.late {
			p.mu.Unlock()
			return
		}
		if f.shares = append(f.shares, seen.Shares...); !ok {
			f.err = r.Err
		}
		if f.done = seen.Ended == ""; f.done {
			if p.left--; p.left == 0 {
				p.wake()
			}
		}
		p.mu.Unlock()
		if !f.done {
			c.timers.Set(&p.timer, c.opt.nodeTimeout, p)
			p.ask(i, seen.Ended)
		}
	})
}

// Fire ends the wait: no master has told a page for a node timeout.
func (p *pages) Fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = true
	p.wake()
}

// wake wakes the caller. The mutex is held.
func (p *pages) wake() {
	if len(p.ready) == 0 {
		p.ready <- struct{}{}
	}
}

// once returns each share once, as it was told last.
func once(shares []wire.Share) []wire.Share {
	at := make(map[string]int, len(shares))
	rest := shares[:0]
	for _, s := range shares {
		if i, ok := at[s.Value]; ok && s.Value != "" {
			rest[i] = s
			continue
		}
		at[s.Value] = len(rest)
		rest = append(rest, s)
	}
	return rest
}
