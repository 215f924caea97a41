package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Dialer connects to an address, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Credentials are what a connection to a master logs in with.
type Credentials struct {
	User     string // empty: the default user
	Password string `json:"-"` // empty: no login is needed
	// Expires is when the master may end a connection that was logged in with these. Zero:
	// never.
	Expires time.Time
}

// Format writes the credentials without the password, whatever the verb is.
func (c Credentials) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "user %q", c.User)
	if !c.Expires.IsZero() {
		fmt.Fprintf(f, " until %s", c.Expires.Format(time.RFC3339))
	}
}

// check refuses credentials that have expired.
func (c *Credentials) check(now time.Time) error {
	if c.Expires.IsZero() || c.Expires.After(now) {
		return nil
	}
	return fmt.Errorf("credentials: Expires %s: %w", c.Expires.Format(time.RFC3339), errExpired)
}

var errExpired = errors.New("must be in the future")

// command is the AUTH with them.
func (c *Credentials) command() *wire.Command {
	args := []string{c.User, c.Password}
	if c.User == "" {
		args = args[1:]
	}
	return &wire.Command{Op: wire.OpRead, Name: "AUTH", Args: args}
}

// maxAsk is how long Config.Credentials may take: programs that fetch a token take seconds.
const maxAsk = 10 * time.Second

// credentials returns what to log in to a master with: what its address has, or what
// the user's function returns.
func (c *Config) credentials(ctx context.Context, a address) (Credentials, error) {
	if c.Credentials == nil || a.password != "" {
		return Credentials{User: a.user, Password: a.password}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := fmt.Errorf("none within %v", maxAsk)
	timer := c.Clock.AfterFunc(maxAsk, func() { cancel(late) })
	defer timer.Stop()
	got, err := c.Credentials(ctx, a.String())
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials: %w", orCause(ctx, err))
	}
	return got, got.check(c.Clock.Now())
}

// dial connects to a master and logs in.
func (c *Config) dial(ctx context.Context, a address, login Credentials) (*socket, error) {
	a.user, a.password = login.User, login.Password
	s, err := a.dial(ctx, c.TLS, c.dialer())
	if err == nil && login.Password != "" {
		s.expires = login.Expires
	}
	return s, err
}

func (c *Config) dialer() Dialer {
	if c.Dialer != nil {
		return c.Dialer
	}
	return (&net.Dialer{KeepAlive: time.Minute}).DialContext
}
