package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func addresses(ms realMasters) (addrs []string) {
	for _, s := range ms {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// A password may change: it is asked for again at every connection.
func TestReal_credentials_are_asked_for_at_every_connection(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.Password("first"))
	var password atomic.Value
	password.Store("first")
	client := dial(t, addresses(ms), redlock.WithCredentials(func(_ context.Context, addr string) (redlock.Credentials, error) {
		if addr == "" {
			return redlock.Credentials{}, errors.New("asked for no master")
		}
		return redlock.Credentials{Password: password.Load().(string)}, nil
	}))
	if err := lock(t, client.Mutex("name")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	password.Store("second")
	for _, s := range ms {
		do(t, s, "CONFIG", "SET", "requirepass", "second")
		do(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}
	eventually(t, "the client has logged in again", func() bool {
		lease, err := client.Mutex("name").TryLock(ctx)
		return err == nil && lease.Unlock(ctx) == nil
	})
}

func TestReal_credentials_that_fail_say_why(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.Password("secret"))
	vault := errors.New("the vault is sealed")
	_, err := redlock.Dial(ctx, addresses(ms), redlock.WithCredentials(func(context.Context, string) (redlock.Credentials, error) {
		return redlock.Credentials{}, vault
	}))
	mustBe(t, err, redlock.ErrNoQuorum)
	mustBe(t, err, vault)
	_, err = redlock.Dial(ctx, addresses(ms), redlock.WithCredentials(func(context.Context, string) (redlock.Credentials, error) {
		return redlock.Credentials{Password: "wrong"}, nil
	}))
	mustBe(t, err, &wire.ServerError{Code: "WRONGPASS"})
}

// A server that does not know AUTH quotes what was to be the password.
func TestReal_credentials_are_not_shown_where_AUTH_is_unknown(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.Config("rename-command", "AUTH", ""))
	log := &diary{}
	_, err := redlock.Dial(ctx, addresses(ms), redlock.WithLogger(slog.New(log)), redlock.WithCredentials(func(context.Context, string) (redlock.Credentials, error) {
		return redlock.Credentials{User: "ann", Password: "hunter2"}, nil
	}))
	mustBe(t, err, redlock.ErrNoQuorum)
	eventually(t, "the log says so", func() bool { return log.said("WARN", "unknown command 'AUTH'") })
	if said := fmt.Sprint(err, log.all()); strings.Contains(said, "hunter2") {
		t.Error(said)
	}
}

func TestReal_dialer_connects(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	place := map[string]string{"a:6379": ms[0].Addr(), "b:6379": ms[1].Addr(), "c:6379": ms[2].Addr()}
	client := dial(t, []string{"a", "b", "c"}, redlock.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, place[addr])
	}))
	if err := lock(t, client.Mutex("name")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}
