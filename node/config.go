package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/guard"
)

// Config says how a Master is reached and watched. The zero Config works: no
// guard, the system's clock and roots, slog's default logger, and the defaults
// below. A zero duration or number is the default; a negative one is refused.
type Config struct {
	// Guard: how long a master is kept from granting after it may have
	// forgotten keys, and how far its clock may step.
	Guard guard.Config
	// KeyPrefix goes before the key of the marker that the guard keeps on the
	// master, see MarkerKey.
	KeyPrefix string
	// Group tells the masters of one client apart. Nil: they are not compared.
	Group *guard.Group
	// TLS is for rediss:// addresses. Nil: the system's roots, the host's name.
	TLS *tls.Config
	// Dialer connects to host:port (tcp) or a path (unix). Nil: a net.Dialer. TLS,
	// if the address asks for it, runs over the connection that it returns.
	Dialer Dialer
	// Credentials returns what to log in with at a master whose address has no password, by
	// the name that Addr returns. It is called at every connection, and again before they
	// expire, by one goroutine for each connection. It may take ten seconds, and must return when
	// ctx ends: Close waits for it. Nil: no login.
	Credentials func(ctx context.Context, addr string) (Credentials, error)
	// LoginTurn is shared by the masters of one client: one at a time renews a login that
	// expires. Nil: this one need not care for others.
	LoginTurn Turn
	// Clock is for every timer of the protocol. Nil: the system's.
	Clock clock.Clock
	// Logger receives quarantines and lost connections, at level warn. Nil:
	// slog.Default().
	Logger *slog.Logger

	ConnectTimeout time.Duration // for dialling, logging in and the handshake; 2 s
	NodeTimeout    time.Duration // how long votes are waited for: a master that is farther away is reported; 0: not known
	MaxAge         time.Duration // of the oldest unanswered command, before the connection is given up; 1 s
	MaxSilence     time.Duration // without any answer, before no acquires are sent; 50 ms, to a twentieth of MaxAge more
	Heartbeat      time.Duration // between looks at the marker and the clock; 1 s. Where clocks are watched, votes count for HeardWithin after a look
	Backoff        Redial        // the pauses before new attempts to connect: from 20 ms to 500 ms
	Linger         time.Duration // how long a subscription outlives its last user; 5 s
	MaxInFlight    int           // unanswered commands; 32768
	MaxUndelivered int           // releases kept until they can be delivered, the newest ones; 65536
}

// Checked fills in the defaults.
func (c Config) Checked() (Config, error) {
	for _, f := range []struct {
		name  string
		value *time.Duration
		unset time.Duration
	}{
		{"Guard.Hold", &c.Guard.Hold, 0},
		{"Guard.ClockTolerance", &c.Guard.ClockTolerance, 0},
		{"ConnectTimeout", &c.ConnectTimeout, 2 * time.Second},
		{"NodeTimeout", &c.NodeTimeout, 0},
		{"MaxAge", &c.MaxAge, time.Second},
		{"MaxSilence", &c.MaxSilence, 50 * time.Millisecond},
		{"Heartbeat", &c.Heartbeat, time.Second},
		{"Backoff.Min", &c.Backoff.Min, 20 * time.Millisecond},
		{"Backoff.Max", &c.Backoff.Max, 500 * time.Millisecond},
		{"Linger", &c.Linger, 5 * time.Second},
	} {
		if *f.value < 0 {
			return c, fmt.Errorf("node config: %s %v: must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.unset
		}
	}
	for _, f := range []struct {
		name  string
		value *int
		unset int
	}{
		{"MaxInFlight", &c.MaxInFlight, 32768},
		{"MaxUndelivered", &c.MaxUndelivered, 65536},
	} {
		if *f.value < 0 {
			return c, fmt.Errorf("node config: %s %d: must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.unset
		}
	}
	if c.Guard.Hold > guard.LongestHold {
		return c, fmt.Errorf("node config: Guard.Hold %v: must be at most %v", c.Guard.Hold, guard.LongestHold)
	}
	if c.Backoff.Min > c.Backoff.Max {
		return c, fmt.Errorf("node config: Backoff.Min %v: must not exceed Backoff.Max %v", c.Backoff.Min, c.Backoff.Max)
	}
	if c.Clock == nil {
		c.Clock = clock.New()
	}
	if c.LoginTurn == nil && c.Credentials != nil {
		c.LoginTurn = NewTurn()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}
