package redlock_test

import (
	"context"
	"errors"
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

// The logins at all masters are due at about the same time, while some of the masters fail. Those
// at the others are renewed on the living connections, nobody loses a lease, and a waiter still
// receives its lock.
func TestReal_logins_are_renewed_while_a_minority_of_the_masters_fails(t *testing.T) {
	t.Parallel()
	whileMinorityFails(t, func(t *testing.T, ms realMasters, fail func() realMasters, mend func()) {
		asked := &loginsAsked{of: map[string]int{}}
		c := dial(t, addresses(ms), redlock.WithTTL(time.Hour), redlock.WithCredentials(func(_ context.Context, addr string) (redlock.Credentials, error) {
			asked.count(addr)
			return redlock.Credentials{User: "ann", Password: "first", Expires: time.Now().Add(4 * second)}, nil
		}))
		lease, orders := lock(t, c.Mutex("kept")), lock(t, c.Mutex("orders"))
		next := lockLater(t, c.Mutex("orders"))
		eventually(t, "it waits at every master, and listens", func() bool { return ms.queuedFor(t, "orders", 1) && subscriptions(t, ms) == len(ms) })
		before := map[*redistest.Server][]string{}
		for _, s := range ms {
			before[s] = sessions(t, s)
		}
		asked.forget()
		well := fail()

		longer(t, "both logins at each of the others are renewed, and one of them once more", func() bool {
			return !slices.ContainsFunc(well, func(s *redistest.Server) bool { return asked.times(s.Addr()) < 3 })
		})

		for _, s := range well {
			if now := sessions(t, s); !slices.Equal(now, before[s]) || len(now) != 2 {
				t.Errorf("connections to %s were %v, are %v", s.Addr(), before[s], now)
			}
		}
		if !lease.Valid() || !orders.Valid() {
			t.Error("a lease is lost")
		}
		unlocks(t, lock(t, c.Mutex("new")))
		unlocks(t, orders)
		unlocks(t, next())
		mend()
		ms.mustBeFreeSoon(t, "orders")
		unlocks(t, lease)
		ms.mustKeepNothing(t)
	}, redistest.User("ann", "first"))
}

// loginsAsked counts how often the login for a master was asked for.
type loginsAsked struct {
	mu sync.Mutex
	of map[string]int
}

func (q *loginsAsked) count(addr string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of[addr]++
}

func (q *loginsAsked) times(addr string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.of[addr]
}

func (q *loginsAsked) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.of)
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
				case e.Kind == node.EventDisconnected:
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

// Five masters end every connection in the same instant. No lease is lost, and no connection is
// dialled two times within 10 ms: the pause before is random (node/redial_test.go).
func TestReal_no_lease_is_lost_when_every_connection_ends_in_the_same_instant(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	dials := &dialLog{at: map[string][]time.Time{}}
	var lost, renewed atomic.Int64
	c := ms.client(t, redlock.WithTTL(10*second), redlock.WithNodeTimeout(second), redlock.WithDialer(dials.dial), redlock.WithObserver(func(e redlock.Event) {
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
	dials.forget()
	before := renewed.Load()

	began := time.Now()
	var all sync.WaitGroup
	for _, s := range ms {
		all.Go(func() {
			s.Do("CLIENT", "KILL", "TYPE", "pubsub")
			s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		})
	}
	all.Wait()

	eventually(t, "both connections to each master are dialled again", func() bool { return dials.least(ms) >= 2 })
	eventually(t, "the client listens again", func() bool { return subscriptions(t, ms) == len(ms) })
	back := time.Since(began)
	eventually(t, "every lease was renewed since", func() bool { return renewed.Load()-before >= int64(len(held)) })
	most := dials.mostWithin(10 * time.Millisecond)
	t.Logf("%d leases: %d lost; at most %d dials of a master in 10 ms, all back after %v", len(held), lost.Load(), most, back)
	if most > 2 {
		t.Errorf("a master was dialled %d times within 10 ms, want once for each of two connections", most)
	}
	if lost.Load() > 0 || slices.ContainsFunc(held, func(l *redlock.Lease) bool { return !l.Valid() }) {
		t.Errorf("%d leases are lost", lost.Load())
	}
	unlocks(t, held[0])
	unlocks(t, next())
}

// dialLog notes when each master was dialled.
type dialLog struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (d *dialLog) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.at[addr] = append(d.at[addr], time.Now())
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (d *dialLog) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = map[string][]time.Time{}
}

// least is how often the master was dialled that was dialled least.
func (d *dialLog) least(ms realMasters) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.at[ms[0].Addr()])
	for _, s := range ms {
		n = min(n, len(d.at[s.Addr()]))
	}
	return n
}

// mostWithin is how often one master was dialled within such a time.
func (d *dialLog) mostWithin(window time.Duration) (most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.at {
		for i := range at {
			n := 0
			for _, later := range at[i:] {
				if later.Sub(at[i]) < window {
					n++
				}
			}
			most = max(most, n)
		}
	}
	return most
}
