package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/node/wire"
)

// dial connects and logs in: transport, TLS, AUTH and SELECT. Ending ctx aborts
// it. redigo does the talking until here. From here on requests are written
// straight into the socket and replies are read from it.
func (a *address) dial(ctx context.Context, config *tls.Config, dialer Dialer) (*socket, error) {
	var w *socket
	open := func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
		if w, err = a.open(ctx, config, dialer); err != nil {
			return nil, err
		}
		return &loginConn{socket: w}, nil
	}
	_, err := redis.DialContext(ctx, a.network, a.host,
		redis.DialContextFunc(open),
		redis.DialUsername(a.user), redis.DialPassword(a.password), redis.DialDatabase(a.db))
	if err == nil && !w.replies.Empty() {
		err = errNotAsked
	}
	if err == nil {
		return w, nil
	}
	if w != nil {
		w.Close()
	}
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return nil, wire.Server(string(refusal))
	}
	return nil, orCause(ctx, err)
}

// orCause returns err, or why ctx ended if that is what made err.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}

// open connects the transport.
func (a *address) open(ctx context.Context, config *tls.Config, dialer Dialer) (*socket, error) {
	raw, err := dialer(ctx, a.network, a.host)
	if err != nil {
		return nil, err
	}
	if !a.tls {
		return newWire(raw, raw), nil
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(a.host)
	}
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS handshake: %w", orCause(ctx, err))
	}
	return newWire(secured, raw), nil
}

// loginConn is what redigo sees of a socket while it logs in. redigo believes every
// length that it reads, so it gets one status or error at a time, after the socket's
// reader has checked it. What comes behind stays in the socket.
type loginConn struct {
	*socket
	unread []byte
}

func (c *loginConn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 {
		reply, err := c.receive()
		if err != nil {
			return 0, err
		}
		switch reply := reply.(type) {
		case string:
			c.unread = []byte("+" + reply + "\r\n")
		case *wire.ServerError:
			c.unread = []byte("-" + reply.Message + "\r\n")
		default:
			return 0, wire.Unreadable("%T to a login", reply)
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}
