package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// Whatever happens to a minority, no lease is at risk, and the client is healthy.
func TestReal_a_minority_of_the_masters_gone_is_no_risk(t *testing.T) {
	t.Parallel()
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			c := masters.client(t, redlock.WithTTL(3*time.Second))
			for _, happens := range []func(realMasters){fault.before, fault.while} {
				if happens != nil {
					happens(masters)
				}
			}
			lease := lock(t, c.Mutex("orders"))
			risk := lease.AtRisk()

			select {
			case <-risk:
				t.Errorf("at risk: %v", lease)
			case <-time.After(3 * time.Second):
			}

			if err := c.Healthy(); err != nil {
				t.Error(err)
			}
			unlocks(t, lease)
			if fault.after != nil {
				fault.after(masters)
			}
		})
	}
}

// Without a majority the holder is warned while it still holds the lock, and all is well again
// when the masters are back.
func TestReal_a_majority_of_the_masters_gone_is_a_risk(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begins, ends func(realMasters) }{
		"hung":   {hang(3), proceed(3)},
		"killed": {kill(3), revive(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			c := masters.client(t, redlock.WithTTL(20*time.Second))
			lease := lock(t, c.Mutex("orders"))
			fault.begins(masters)

			<-lease.AtRisk()

			if !lease.Valid() || lease.Remaining() > 10*time.Second {
				t.Errorf("told too late, or too early: %v", lease)
			}
			err := c.Healthy()
			mustBe(t, err, redlock.ErrNoQuorum)
			if failed := new(redlock.Error); !errors.As(err, &failed) || len(failed.Votes) != 5 {
				t.Errorf("%v does not list the masters", err)
			}
			if said := `lock "orders" was not renewed for`; !strings.Contains(err.Error(), said) {
				t.Errorf("%v does not say %s", err, said)
			}
			fault.ends(masters)
			eventually(t, "the client is healthy", func() bool { return c.Healthy() == nil })
			lease.Unlock(ctx) // masters that were killed have forgotten it
		})
	}
}

// New masters may have forgotten what they promised, and do not vote.
func TestReal_a_majority_in_quarantine_is_not_healthy(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	c := masters.client(t, redlock.WithTTL(time.Minute), redlock.WithRestartGuard(time.Minute))
	mustBe(t, c.Healthy(), guard.ErrQuarantined)

	c.Close()

	mustBe(t, c.Healthy(), redlock.ErrClosed)
}

// Masters that store nothing are connected and vote. Who asked for a lock knows better, until one is stored.
func TestReal_L88_a_client_is_not_healthy_whose_masters_store_no_locks(t *testing.T) {
	t.Parallel()
	for code, settings := range map[string][2][2]string{ // what is set, and what ends it
		"OOM":        {{"maxmemory", "1"}, {"maxmemory", "0"}},
		"NOREPLICAS": {{"min-replicas-to-write", "1"}, {"min-replicas-to-write", "0"}},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 3)
			c := masters.client(t, redlock.WithTTL(3*time.Second))
			m := c.Mutex("orders")
			unlocks(t, lock(t, m))
			set := func(setting [2]string, some ...*redistest.Server) {
				for _, s := range some {
					do(t, s, "CONFIG", "SET", setting[0], setting[1])
				}
			}
			set(settings[0], masters[0])
			unlocks(t, lock(t, m))
			noError(t, c.Healthy())
			set(settings[0], masters...)
			_, err := m.TryLock(ctx)
			mustBe(t, err, redlock.ErrNoQuorum)

			err = c.Healthy()

			mustBe(t, err, redlock.ErrNoQuorum)
			if !strings.Contains(err.Error(), code) {
				t.Errorf("%v does not say %s", err, code)
			}
			set(settings[1], masters...)
			unlocks(t, lock(t, m))
			noError(t, c.Healthy())
		})
	}
}

// A full master goes on to say that a lock is taken: that stores nothing.
func TestReal_L88_a_lock_that_is_taken_makes_no_full_masters_healthy(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	c, other := masters.client(t), masters.client(t)
	for what, takes := range map[string]func(c *redlock.Client) (*redlock.Lease, error){
		"fair":      func(c *redlock.Client) (*redlock.Lease, error) { return c.Mutex("fair", redlock.Fair()).TryLock(ctx) },
		"multi":     func(c *redlock.Client) (*redlock.Lease, error) { return c.Multi([]string{"a", "b"}).TryLock(ctx) },
		"write":     func(c *redlock.Client) (*redlock.Lease, error) { return c.RWMutex("rw").TryLock(ctx) },
		"semaphore": func(c *redlock.Client) (*redlock.Lease, error) { return c.Semaphore("few", 1).TryAcquire(ctx, 1) },
	} {
		_, err := takes(other)
		noError(t, err)
		masters.doAll(t, "CONFIG", "SET", "maxmemory", "1")
		_, err = c.Mutex("orders").TryLock(ctx)
		mustBe(t, err, redlock.ErrNoQuorum)

		_, err = takes(c)

		mustBe(t, err, redlock.ErrTaken)
		if c.Healthy() == nil {
			t.Errorf("%s: it is healthy", what)
		}
		masters.doAll(t, "CONFIG", "SET", "maxmemory", "0")
	}
}

// Our user lost the right to a command that every lock needs.
func TestReal_L88_a_client_is_not_healthy_that_may_not_store(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	c := masters.client(t)
	masters.doAll(t, "ACL", "SETUSER", "default", "-set")
	_, err := c.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)

	mustBe(t, c.Healthy(), redlock.ErrNoQuorum)

	masters.doAll(t, "ACL", "SETUSER", "default", "+set", "resetkeys", "~redlock:*")
	_, err = c.Mutex("orders").TryLock(ctx)
	mustBe(t, err, &wire.ServerError{Code: "NOPERM"})
	masters.doAll(t, "ACL", "SETUSER", "default", "allkeys")
	unlocks(t, lock(t, c.Mutex("orders")))
	noError(t, c.Healthy())
}
