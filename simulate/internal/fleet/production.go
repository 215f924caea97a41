package fleet

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// transport is the production transport between a client and one master: a
// node.Master whose threads and connections are simulated.
type transport struct {
	*node.Master
	client *Client
	master *Master
	wire   *Cable

	repairs map[string]bool // values put back by repairs: a request does not name its Op
}

func newTransport(c *Client, m *Master, w *Cable, group *guard.Group) (*transport, error) {
	t := &transport{client: c, master: m, wire: w, repairs: map[string]bool{}}
	config := node.Config{
		Guard:  c.Guard,
		Group:  group,
		Dialer: t.dial,
		Clock:  c.Host.Clock,
		Logger: slog.New(slog.DiscardHandler),
	}
	opened, err := seam.OpenMaster(m.Host.Name, config, seam.Threads{
		Go:     c.Host.Work,
		Wait:   c.World.Wait,
		Yield:  func() {},
		Now:    c.Host.Clock.Now,
		Random: w.dice.Bits,
	})
	if err != nil {
		return nil, err
	}
	t.Master = opened.(*node.Master)
	return t, nil
}

// Addr implements node.Node.
func (t *transport) Addr() string { return t.master.Host.Name }

// Do implements node.Node, and counts.
func (t *transport) Do(cmd *wire.Command, done func(wire.Reply)) { t.client.weak.Do(cmd, done, t.do) }

func (t *transport) do(cmd *wire.Command, done func(wire.Reply)) {
	if t.client.Host.Down {
		return // code that a crash unwinds sends no commands
	}
	if t.client.steps.Free() {
		t.client.step()
	}
	t.client.Watch.Gives(t.master.Index, cmd)
	if cmd.Op == wire.OpRepair {
		t.repairs[cmd.Args[0]] = true
	}
	t.Master.Do(cmd, func(r wire.Reply) {
		switch {
		case r.Err == nil:
		case errors.Is(r.Err, guard.ErrQuarantined):
			t.client.Stats.Quarantined++
		case errors.Is(r.Err, node.ErrUnknown):
			t.client.Stats.Unknown++
		}
		t.client.Watch.Hand(t.master.Index, cmd, done, r)
	})
}

// dial is the node.Dialer. It takes one round trip, unless the master is down.
func (t *transport) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p := newPipe(t)
	o := &opening{p, make(chan struct{})}
	p.conn.end = o
	t.wire.accept(p.conn)
	if t.master.Host.Down {
		p.conn.hangUp()
	} else {
		t.wire.send(&p.conn.out, t.master.Host, world.Action(func() { t.accept(o) }), Outward)
	}
	if err := t.client.World.Wait(ctx, o.done); err != nil {
		p.Close()
		return nil, err
	}
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

// accept is what the master does with a new connection. A stopped server
// accepts, too; its kernel does that.
func (t *transport) accept(o *opening) {
	c := o.conn
	if c.life != t.master.Host.Life {
		c.hangUp()
		return
	}
	t.master.conns = append(t.master.conns, c)
	t.wire.send(&c.in, c.host, world.Action(func() {
		if c.open && c.end == o {
			c.end = o.pipe
			close(o.done)
		}
	}), Inward)
}

// Quiet reports whether the master is connected, nothing is under way, and
// nothing is owed.
func (t *transport) Quiet() bool {
	s := t.Status()
	return s.State == node.StateConnected && s.InFlight == 0 && s.Undelivered == 0
}

// Settled reports whether the master has got everything that was sent, on
// whatever connection, and is owed nothing.
func (t *transport) Settled() bool {
	return t.wire.Busy <= t.client.World.Now && !t.wire.holds() && t.Quiet()
}

// Owing implements connection.
func (t *transport) Owing() int { return t.Status().Undelivered }

// Well implements connection.
func (t *transport) Well() bool {
	h, w := t.master.Host, t.wire
	if h.Down || h.Stopped() || t.master.Refuses != nil || w.Cut[Outward] > 0 || w.Cut[Inward] > 0 || w.Slow > 0 {
		return false
	}
	for _, c := range w.conns {
		if c.open && (c.life != h.Life || max(c.out.last, c.in.last) > w.world.Now+2*w.latency.Base) {
			return false
		}
	}
	return t.Votes() == nil
}

// Held implements connection. Without a quarantine, too, a master is kept from voting as long as it
// is not known which clocks are right (S63).
func (t *transport) Held() bool {
	why := t.Votes()
	return t.Status().Quarantine > 0 || errors.Is(why, guard.ErrQuarantined) || errors.Is(why, guard.ErrOtherGroup)
}

// Crash closes the connections as the client's kernel does.
func (t *transport) crash() {
	for _, c := range t.wire.conns {
		if p, ok := c.end.(*pipe); ok {
			p.shut(net.ErrClosed)
		}
	}
}
