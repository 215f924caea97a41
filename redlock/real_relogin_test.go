package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// sessions returns the ids of ann's connections to a master.
func sessions(t testing.TB, s *redistest.Server) (ids []string) {
	t.Helper()
	for line := range strings.Lines(string(do(t, s, "CLIENT", "LIST").([]byte))) {
		if id, _, _ := strings.Cut(line, " "); strings.Contains(line, " user=ann ") {
			ids = append(ids, id)
		}
	}
	return ids
}

// The logins at all masters are due at about the same time, while some of the masters hang. Those
// at the others are renewed on the living connections, nobody loses a lease, and a waiter still
// receives its lock.
func TestReal_logins_are_renewed_while_a_minority_hangs(t *testing.T) {
	for hung := range 3 {
		t.Run(fmt.Sprintf("%d of 5 hung", hung), func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5, redistest.User("ann", "first"))
			var mu sync.Mutex
			asked := map[string]int{}
			c := dial(t, addresses(ms), redlock.WithTTL(time.Hour), redlock.WithCredentials(func(_ context.Context, addr string) (redlock.Credentials, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[addr]++
				return redlock.Credentials{User: "ann", Password: "first", Expires: time.Now().Add(4 * second)}, nil
			}))
			lease, orders := lock(t, c.Mutex("kept")), lock(t, c.Mutex("orders"))
			next := lockLater(t, c.Mutex("orders"))
			eventually(t, "it waits at every master, and listens", func() bool { return ms.queuedFor(t, "orders", 1) && subscriptions(t, ms) == len(ms) })
			var before [5][]string
			for i, s := range ms {
				before[i] = sessions(t, s)
			}
			mu.Lock()
			clear(asked)
			mu.Unlock()
			for _, s := range ms[:hung] {
				s.Stop()
			}

			longer(t, "both logins at each of the others are renewed, and one of them once more", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !slices.ContainsFunc(ms[hung:], func(s *redistest.Server) bool { return asked[s.Addr()] < 3 })
			})

			for i, s := range ms[hung:] {
				if now := sessions(t, s); !slices.Equal(now, before[hung+i]) || len(now) != 2 {
					t.Errorf("connections to %s were %v, are %v", s.Addr(), before[hung+i], now)
				}
			}
			if !lease.Valid() || !orders.Valid() {
				t.Error("a lease is lost")
			}
			unlocks(t, lock(t, c.Mutex("new")))
			unlocks(t, orders)
			unlocks(t, next())
			for _, s := range ms[:hung] {
				s.Continue()
			}
			ms.mustBeFreeSoon(t, "orders")
			ms.mustHold(t, lease)
			unlocks(t, lease)
		})
	}
}

// A password is changed at all masters while leases are held: no connection ends by that, and
// leases are renewed and given as before. A connection that breaks comes back with the new one.
func TestReal_a_password_that_is_changed_on_living_masters_costs_no_lease(t *testing.T) {
	for name, how := range map[string]struct {
		user   string
		server redistest.Option
		change []any
	}{
		"requirepass": {"", redistest.Password("first"), []any{"CONFIG", "SET", "requirepass", "second"}},
		"ACL":         {"ann", redistest.User("ann", "first"), []any{"ACL", "SETUSER", "ann", "resetpass", ">second"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5, how.server)
			var password atomic.Value
			password.Store("first")
			var renewed, disconnected atomic.Int64
			c := dial(t, addresses(ms), redlock.WithTTL(3*second), redlock.WithCredentials(func(context.Context, string) (redlock.Credentials, error) {
				return redlock.Credentials{User: how.user, Password: password.Load().(string)}, nil
			}), redlock.WithObserver(func(e redlock.Event) {
				switch {
				case e.Kind == redlock.LeaseRenewed && e.Err == nil:
					renewed.Add(1)
				case e.Kind == redlock.NodeDisconnected:
					disconnected.Add(1)
				}
			}))
			lease := lock(t, c.Mutex("orders"))

			ms.doAll(t, how.change[0].(string), how.change[1:]...)

			before := renewed.Load()
			eventually(t, "it is renewed", func() bool { return renewed.Load() >= before+2 })
			if unlocks(t, lock(t, c.Mutex("new"))); !lease.Valid() || disconnected.Load() > 0 {
				t.Errorf("valid: %v; %d connections are lost", lease.Valid(), disconnected.Load())
			}
			do(t, ms[0], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			eventually(t, "the old password is refused", func() bool {
				first := c.Nodes()[0]
				return first.State == node.StateDown && errors.Is(first.LastError, &wire.ServerError{Code: "WRONGPASS"})
			})
			if !lease.Valid() {
				t.Error("the lease is lost")
			}
			password.Store("second")
			eventually(t, "it is connected again", func() bool { return c.Nodes()[0].State == node.StateConnected })
			unlocks(t, lease)
		})
	}
}

// Five masters end every connection in the same instant. No lease is lost, and each connection is
// dialled again after a pause, which is random (node/redial_test.go): never two times within 10 ms.
func TestReal_no_lease_is_lost_when_every_connection_ends_in_the_same_instant(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	var mu sync.Mutex
	var dials []time.Time
	var lost, renewed atomic.Int64
	c := ms.client(t, redlock.WithTTL(10*second), redlock.WithNodeTimeout(second), redlock.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		dials = append(dials, time.Now())
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, addr)
	}), redlock.WithObserver(func(e redlock.Event) {
		switch {
		case e.Kind == redlock.LeaseLost:
			lost.Add(1)
		case e.Kind == redlock.LeaseRenewed && e.Err == nil:
			renewed.Add(1)
		}
	}))
	held := lockMany(t, c, *leases)
	next := lockLater(t, c.Mutex("lease0"))
	eventually(t, "it listens", func() bool { return subscriptions(t, ms) == len(ms) })
	mu.Lock()
	dials = nil
	mu.Unlock()
	before := renewed.Load()

	began := time.Now()
	var all sync.WaitGroup
	for _, s := range ms {
		all.Go(func() { s.Do("CLIENT", "KILL", "TYPE", "pubsub") })
		all.Go(func() { s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
	}
	all.Wait()

	eventually(t, "the client listens again", func() bool { return subscriptions(t, ms) == len(ms) })
	back := time.Since(began)
	eventually(t, "every lease was renewed since", func() bool { return renewed.Load()-before >= int64(len(held)) })
	mu.Lock()
	most := 0
	for i := range dials {
		n := 0
		for _, at := range dials[i:] {
			if at.Sub(dials[i]) < 10*time.Millisecond {
				n++
			}
		}
		most = max(most, n)
	}
	t.Logf("%d leases: %d lost; %d dials, at most %d in 10 ms, the first %v and all back %v after the end", len(held), lost.Load(), len(dials), most, dials[0].Sub(began), back)
	mu.Unlock()
	if most > 2*len(ms) {
		t.Errorf("%d dials within 10 ms, want one of each connection at most", most)
	}
	for _, lease := range held {
		if !lease.Valid() {
			t.Fatalf("%d leases are lost", lost.Load())
		}
	}
	unlocks(t, held[0])
	unlocks(t, next())
}
