package fleet

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// pipe is a client's end of a byte connection: the net.Conn on which the
// production transport runs.
type pipe struct {
	conn   *conn
	server *server

	in      []byte        // has arrived and was not read
	err     error         // nothing more comes
	changed chan struct{} // holds a token when there is news for Read
	abort   bool          // Close discards untransmitted data
}

func newPipe(t *transport) *pipe {
	p := &pipe{changed: make(chan struct{}, 1)}
	p.server = &server{transport: t, pipe: p}
	p.conn = &conn{wire: t.wire, host: t.client.Host, end: p, open: true, life: t.master.Host.Life}
	return p
}

// Read implements net.Conn.
func (p *pipe) Read(b []byte) (int, error) {
	for len(p.in) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		if err := p.conn.wire.world.Wait(context.Background(), p.changed); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n, nil
}

// arrive takes bytes from the master.
func (p *pipe) arrive(b []byte) {
	if p.err == nil {
		p.in = append(p.in, b...)
		p.tell()
	}
}

func (p *pipe) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Write implements net.Conn. The network keeps everything, so it never waits.
func (p *pipe) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	request := slices.Clone(b)
	p.conn.wire.send(&p.conn.out, p.server.master.Host, world.Action(func() { p.server.received(request) }), Outward)
	return len(b), nil
}

// broken implements endpoint: the connection was reset.
func (p *pipe) broken(c *conn, _ error) {
	if !c.open {
		return
	}
	p.server.client.Stats.Broken++
	p.shut(syscall.ECONNRESET)
}

// shut ends the connection on the client's side, and tells the master.
func (p *pipe) shut(err error) {
	if !p.conn.open {
		return
	}
	p.conn.open, p.err = false, err
	p.tell()
	p.conn.wire.send(&p.conn.out, p.server.master.Host, world.Action(p.server.gone), Outward)
}

// Close implements net.Conn.
func (p *pipe) Close() error {
	if p.abort {
		p.conn.out.waiting = nil
	}
	p.shut(net.ErrClosed)
	return nil
}

// SetLinger is what the transport knows of a *net.TCPConn.
func (p *pipe) SetLinger(int) error {
	p.abort = true
	return nil
}

// SetDeadline implements net.Conn, for reading.
func (p *pipe) SetDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	expire := func() {
		if p.err == nil {
			p.err = os.ErrDeadlineExceeded
			p.tell()
		}
	}
	if d := p.conn.host.Clock.Until(t); d > 0 {
		p.conn.host.Clock.Later(d, expire)
	} else {
		expire()
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (p *pipe) SetReadDeadline(t time.Time) error { return p.SetDeadline(t) }

// SetWriteDeadline implements net.Conn. No write waits.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (p *pipe) LocalAddr() net.Addr { return &net.UnixAddr{Name: p.conn.host.Name, Net: "simulated"} }

// RemoteAddr implements net.Conn.
func (p *pipe) RemoteAddr() net.Addr {
	return &net.UnixAddr{Name: p.server.master.Host.Name, Net: "simulated"}
}

// opening is a pipe that is being connected.
type opening struct {
	*pipe
	done chan struct{} // closed when the master has accepted, or will not
}

// broken implements endpoint: no server listens at the address. The dialer may have given up
// already.
func (o *opening) broken(*conn, error) {
	if !o.conn.open {
		return
	}
	o.conn.open, o.err = false, syscall.ECONNREFUSED
	close(o.done)
}
