package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
)

// dial connects and logs in: transport, TLS, AUTH and SELECT. Ending ctx aborts
// it. redigo does the talking until here, and reads the replies ever after;
// requests are written straight into the returned wire.
func (a *address) dial(ctx context.Context, config *tls.Config) (*wire, redis.Conn, error) {
	var w *wire
	open := func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
		w, err = a.open(ctx, config)
		return w, err
	}
	replies, err := redis.DialContext(ctx, a.network, a.host,
		redis.DialContextFunc(open),
		redis.DialUsername(a.user), redis.DialPassword(a.password), redis.DialDatabase(a.db))
	if err == nil {
		return w, replies, nil
	}
	if w != nil {
		w.Close()
	}
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return nil, nil, Server(string(refusal))
	}
	return nil, nil, orCause(ctx, err)
}

// orCause returns err, or why ctx ended if that is what made err.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}

// open connects the transport.
func (a *address) open(ctx context.Context, config *tls.Config) (*wire, error) {
	raw, err := (&net.Dialer{KeepAlive: time.Minute}).DialContext(ctx, a.network, a.host)
	if err != nil {
		return nil, err
	}
	if !a.tls {
		return &wire{Conn: raw, raw: raw}, nil
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
	return &wire{Conn: secured, raw: raw}, nil
}

// wire is the connection that redigo reads from and we write to.
type wire struct {
	net.Conn
	raw     net.Conn // below TLS
	limited bool     // a read deadline is set
}

// SetReadDeadline spares the system most of the calls: redigo clears the
// deadline before every reply, and nearly always there is none.
func (w *wire) SetReadDeadline(t time.Time) error {
	if t.IsZero() && !w.limited {
		return nil
	}
	w.limited = !t.IsZero()
	return w.Conn.SetReadDeadline(t)
}

// abort has the next Close throw away what was not transmitted yet. Otherwise
// the kernel would go on trying after Close, and could deliver an acquire when
// the link heals, after its release went over the next connection (L3).
func (w *wire) abort() {
	if tcp, ok := w.raw.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}
