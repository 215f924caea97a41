package simulate

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// transport is the production transport between a client and one master: a
// node.Master whose threads and connections are simulated.
type transport struct {
	*node.Master
	client *client
	master *master
	wire   *cable

	repairs map[string]bool // values that were put back: a request does not say what it is for
}

// Returned implements node.Returning.
func (t *transport) Returned(f func()) { t.Master.Returned(t.client.noteReturn(f)) }

func newTransport(c *client, m *master, w *cable) (*transport, error) {
	t := &transport{client: c, master: m, wire: w, repairs: map[string]bool{}}
	config := node.Config{
		Guard:  c.guard,
		Group:  c.group,
		Dialer: t.dial,
		Clock:  c.host.clock,
		Logger: slog.New(slog.DiscardHandler),
	}
	opened, err := seam.OpenMaster(m.host.name, config, seam.Threads{
		Go:     c.host.work,
		Wait:   c.world.wait,
		Yield:  func() {},
		Now:    c.host.clock.Now,
		Random: w.dice.bits,
	})
	if err != nil {
		return nil, err
	}
	t.Master = opened.(*node.Master)
	return t, nil
}

// Addr implements node.Node.
func (t *transport) Addr() string { return t.master.host.name }

// Do implements node.Node, and counts.
func (t *transport) Do(cmd *wire.Command, done func(wire.Reply)) { t.client.weak.Do(cmd, done, t.do) }

func (t *transport) do(cmd *wire.Command, done func(wire.Reply)) {
	if t.client.host.down {
		return // what a crash unwinds is not done any more
	}
	if t.client.steps.Free() {
		t.client.step()
	}
	t.client.gives(t.master.index, cmd)
	if cmd.Op == wire.OpRepair {
		t.repairs[cmd.Args[0]] = true
	}
	t.Master.Do(cmd, func(r wire.Reply) {
		switch {
		case r.Err == nil:
		case errors.Is(r.Err, node.ErrQuarantined):
			t.client.stats.quarantined++
		case errors.Is(r.Err, node.ErrUnknown):
			t.client.stats.unknown++
		}
		t.client.hand(t.master.index, cmd, done, r)
	})
}

// dial is the node.Dialer: one round trip, unless nobody is there.
func (t *transport) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p := newPipe(t)
	o := &opening{p, make(chan struct{})}
	p.conn.end = o
	t.wire.accept(p.conn)
	if t.master.host.down {
		p.conn.hangUp()
	} else {
		t.wire.send(&p.conn.out, t.master.host, action(func() { t.accept(o) }), outward)
	}
	if err := t.client.world.wait(ctx, o.done); err != nil {
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
	if c.life != t.master.host.life {
		c.hangUp()
		return
	}
	t.master.conns = append(t.master.conns, c)
	t.wire.send(&c.in, c.host, action(func() {
		if c.open && c.end == o {
			c.end = o.pipe
			close(o.done)
		}
	}), inward)
}

// quiet reports whether the master is connected, nothing is under way, and
// nothing is owed.
func (t *transport) quiet() bool {
	s := t.Status()
	return s.State == node.StateConnected && s.InFlight == 0 && s.Undelivered == 0
}

// settled reports whether the master has got everything that was sent, on
// whatever connection, and is owed nothing.
func (t *transport) settled() bool {
	return t.wire.busy <= t.client.world.now && !t.wire.holds() && t.quiet()
}

// owed implements connection.
func (t *transport) owed() int { return t.Status().Undelivered }

// well implements connection.
func (t *transport) well() bool {
	h, w := t.master.host, t.wire
	if h.down || h.stopped() || t.master.refuses != nil || w.cut[outward] > 0 || w.cut[inward] > 0 || w.slow > 0 {
		return false
	}
	for _, c := range w.conns {
		if c.open && (c.life != h.life || max(c.out.last, c.in.last) > w.world.now+2*w.latency.base) {
			return false
		}
	}
	s := t.Status()
	return s.State == node.StateConnected && !s.Silent && s.Quarantine == 0
}

func (t *transport) held() bool { return t.Status().Quarantine > 0 }

// crash closes the connections as the client's kernel does.
func (t *transport) crash() {
	for _, c := range t.wire.conns {
		if p, ok := c.end.(*pipe); ok {
			p.shut(net.ErrClosed)
		}
	}
}

func (t *transport) believes(proof string) bool { return t.Believes(proof) }
