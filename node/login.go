package node

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Dialer connects to an address, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Credentials returns the user and the password for a master, by the name that Addr
// returns. An empty password means that no login is needed.
type Credentials func(ctx context.Context, addr string) (user, password string, err error)

// dial connects to a master and logs in.
func (c *Config) dial(ctx context.Context, a address) (*socket, error) {
	if ask := c.Credentials; ask != nil && a.password == "" {
		var err error
		if a.user, a.password, err = ask(ctx, a.String()); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	return a.dial(ctx, c.TLS, c.dialer())
}

func (c *Config) dialer() Dialer {
	if c.Dialer != nil {
		return c.Dialer
	}
	return (&net.Dialer{KeepAlive: time.Minute}).DialContext
}
