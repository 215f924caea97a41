package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Dialogue asks a master and waits for the answers: a handshake before the connection is
// shared, and what operators do. It is for one goroutine.
type Dialogue struct {
	socket   *socket
	patience time.Duration // for the answers to one Ask; zero: until the connection ends
	ctx      context.Context
	end      func() bool
}

// Talk connects to a master. The connection ends with ctx, and when the master has not answered within
// the ConnectTimeout.
func Talk(ctx context.Context, addr string, config Config) (*Dialogue, error) {
	a, err := parseAddress(addr)
	if err != nil {
		return nil, err
	}
	if config, err = config.Checked(); err != nil {
		return nil, err
	}
	login, err := config.credentials(ctx, a)
	if err != nil {
		return nil, err
	}
	s, err := config.dial(ctx, a, login)
	if err != nil {
		return nil, err
	}
	return &Dialogue{s, config.ConnectTimeout, ctx, context.AfterFunc(ctx, func() { s.Close() })}, nil
}

// Close closes the connection.
func (d *Dialogue) Close() {
	d.end()
	d.socket.Close()
}

// Ask sends the commands in one write, scripts by their source, and returns all answers. A
// server that refuses the connection says why and closes it: then that is the error.
func (d *Dialogue) Ask(cmds ...*wire.Command) ([]wire.Reply, error) {
	if d.patience > 0 {
		// The network's time, as in conn.drain: also if the injected clock stands still, no operator waits
		// for a master that hangs.
		d.socket.SetDeadline(time.Now().Add(d.patience))
	}
	answers, err := d.ask(cmds)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w, within %v", ErrTimeout, d.patience)
	}
	if err != nil {
		return nil, orCause(d.ctx, err)
	}
	return answers, nil
}

func (d *Dialogue) ask(cmds []*wire.Command) ([]wire.Reply, error) {
	size := 0
	for _, cmd := range cmds {
		size += wire.Size(cmd, wire.BySource)
	}
	b := make([]byte, 0, size) // mostly sources of scripts; this runs for every new connection
	for _, cmd := range cmds {
		b = wire.Append(b, cmd, wire.BySource)
	}
	if _, err := d.socket.Write(b); err != nil {
		return nil, err
	}
	answers := make([]wire.Reply, 0, len(cmds))
	for _, cmd := range cmds {
		value, err := d.socket.receive()
		if err != nil && len(answers) > 0 && answers[0].Err != nil {
			return nil, answers[0].Refused()
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, said(cmd, value))
	}
	return answers, nil
}

// said is the reply to a command.
func said(cmd *wire.Command, value any) wire.Reply {
	if refusal, ok := value.(*wire.ServerError); ok {
		return wire.Reply{Err: &wire.Error{Op: cmd.Op, Err: refusal}}
	}
	return wire.Reply{Value: value}
}
