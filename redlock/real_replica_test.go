package redlock_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// S50: B is made a replica of another server and a master again, without a restart. It
// has the keys of the other server then, the run_id that it had, and in one case the very
// marker that it had: the other server was its replica before.
func TestReal_S50_a_master_that_was_a_replica_in_between_does_not_vote(t *testing.T) {
	t.Parallel()
	for of, source := range map[string]func(t *testing.T, ms realMasters) *redistest.Server{
		"of its own replica of before": func(t *testing.T, ms realMasters) *redistest.Server {
			return copyOf(t, ms[1])
		},
		"of another master": func(t *testing.T, ms realMasters) *redistest.Server { return ms[2] },
		"of an empty server": func(t *testing.T, ms realMasters) *redistest.Server {
			return redistest.Start(t)
		},
	} {
		for who, seen := range map[string]func(t *testing.T, ms realMasters, opts []redlock.Option) *redlock.Mutex{
			"a client that is connected": func(t *testing.T, ms realMasters, opts []redlock.Option) *redlock.Mutex {
				return ms.connected(t, opts...)
			},
			"a new client": nil,
		} {
			t.Run(of+", "+who, func(t *testing.T) {
				t.Parallel()
				ms := startMasters(t, 3)
				var other *redistest.Server
				var rival *redlock.Mutex
				opts := []redlock.Option{redlock.WithTTL(10 * second), redlock.WithRestartGuard(10 * second)}
				h := newCutHolder(t, ms, func() {
					other = source(t, ms)
					if seen != nil {
						rival = seen(t, ms, opts)
					}
				}, func() {
					follow(t, ms[1], other)
					do(t, ms[1], "REPLICAOF", "NO", "ONE")
				}, opts...)
				if rival == nil {
					rival = ms.client(t, opts...).Mutex("orders")
				}

				var lease *redlock.Lease
				var err error
				eventually(t, "the master is known to have forgotten", func() bool { // its connections have just ended
					lease, err = rival.TryLock(ctx)
					return err == nil || errors.Is(err, guard.ErrQuarantined)
				})
				if err == nil && h.lease.Valid() {
					began := time.Now()
					for h.lease.Valid() && lease.Valid() {
						time.Sleep(time.Millisecond)
					}
					t.Fatalf("two holders for %v: %v and %v", time.Since(began), h.lease, lease)
				}
				mustBe(t, err, guard.ErrQuarantined)
			})
		}
	}
}

// connected returns the mutex of a client that can lock with every master.
func (ms realMasters) connected(t *testing.T, opts ...redlock.Option) *redlock.Mutex {
	t.Helper()
	c := ms.client(t, opts...)
	lease := lock(t, c.Mutex("something else"))
	ms.mustHold(t, lease)
	if err := lease.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	return c.Mutex("orders")
}

// copyOf starts a server with the keys that s has, and makes it a master.
func copyOf(t *testing.T, s *redistest.Server) *redistest.Server {
	t.Helper()
	other := redistest.Start(t)
	follow(t, other, s)
	do(t, other, "REPLICAOF", "NO", "ONE")
	return other
}

// follow makes s a replica of another server, and waits until it has its keys.
func follow(t *testing.T, s, other *redistest.Server) {
	t.Helper()
	var host, port string
	if _, err := fmt.Sscanf(other.Addr(), "127.0.0.1:%s", &port); err != nil {
		t.Fatal(err)
	}
	host = "127.0.0.1"
	do(t, s, "REPLICAOF", host, port)
	up := regexp.MustCompile(`master_link_status:up`)
	eventually(t, "the replica has its master's keys", func() bool {
		info, err := redis.String(s.Do("INFO", "replication"))
		return err == nil && up.MatchString(info)
	})
}
