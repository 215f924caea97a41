package redlock_test

import (
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// What restarts and first locks cost. make restarts runs this with 10,000 leases
// and the default guard, and prints how long each took.
var (
	leases  = flag.Int("leases", 200, "how many leases are held while the masters restart")
	longest = flag.Duration("guard", 2*time.Second, "restart guard of those who lock for the first time")
)

// S18: five masters restart without their memory, one after the other, each as
// soon as the one before has all keys back. No holder notices.
func TestReal_S18_rolling_restart_loses_no_lease(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d at once", atOnce), func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5)
			declareNew(t, redistest.URLs(ms))
			// The defaults, but for masters that share two processors with 10,000 leases.
			book := &diary{}
			c := ms.client(t, redlock.WithTTL(defaults.TTL), redlock.WithRestartGuard(defaults.TTL), redlock.WithLogger(slog.New(book)))
			held := lockMany(t, c, *leases)
			defer func() {
				if t.Failed() {
					t.Logf("the client says %q", book.all())
				}
			}()
			eventually(t, "every master has all leases", func() bool { return ms.haveAll(t, held) })

			began := time.Now()
			for i := 0; i < len(ms); i += atOnce {
				next := ms[i:min(i+atOnce, len(ms))]
				for _, s := range next {
					s.RestartEmpty()
				}
				eventually(t, "every master has all leases again", func() bool { return ms.haveAll(t, held) })
			}

			lost := 0
			for _, lease := range held {
				if !lease.Valid() {
					lost++
				}
			}
			t.Logf("%d leases, five masters restarted %d at once in %v: %d lost", len(held), atOnce, time.Since(began).Round(time.Millisecond), lost)
			if lost > 0 {
				t.Errorf("%d of %d leases were lost", lost, len(held))
			}
		})
	}
}

// lockMany locks n locks of different names.
func lockMany(t *testing.T, c *redlock.Client, n int) []*redlock.Lease {
	t.Helper()
	held := make([]*redlock.Lease, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				lease, err := c.Mutex(fmt.Sprint("lease", i)).Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				held[i] = lease
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return held
}

// haveAll reports whether every master has as many keys as there are leases, beside
// those of the guard.
func (ms realMasters) haveAll(t testing.TB, held []*redlock.Lease) bool {
	t.Helper()
	for _, s := range ms {
		keys, err := redis.Int(s.Do("DBSIZE"))
		if err != nil {
			t.Fatal(err)
		}
		guards, err := redis.Int(s.Do("EXISTS", wire.MarkerKey(""), "redlock:clock"))
		if err != nil {
			t.Fatal(err)
		}
		if keys-guards < len(held) {
			return false
		}
	}
	return true
}

// S34: what the first lock waits for. Nobody waits who is new, only masters
// whose memory nothing proves are waited for.
func TestReal_S34_what_the_first_lock_waits_for(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		given func(t *testing.T, ms realMasters) (restarted time.Time)
		waits bool
	}{
		{"new masters", func(*testing.T, realMasters) (never time.Time) { return never }, true},
		{"masters that are up for longer than the guard, and were never used", func(t *testing.T, ms realMasters) (restarted time.Time) {
			longer(t, "they are up", func() bool { return uptime(t, ms[0]) > *longest+second })
			return restarted
		}, true},
		{"new masters that were declared new", func(t *testing.T, ms realMasters) (restarted time.Time) {
			declareNew(t, redistest.URLs(ms))
			return restarted
		}, false},
		{"a new process beside one that has locked before", func(t *testing.T, ms realMasters) (restarted time.Time) {
			used(t, ms)
			return restarted
		}, false},
		{"one master of five has restarted", func(t *testing.T, ms realMasters) (restarted time.Time) {
			used(t, ms)
			ms[0].RestartEmpty()
			return restarted
		}, false},
		{"two masters of five have restarted", func(t *testing.T, ms realMasters) (restarted time.Time) {
			used(t, ms)
			ms[0].RestartEmpty()
			ms[1].RestartEmpty()
			return restarted
		}, false},
		{"three masters of five have restarted", func(t *testing.T, ms realMasters) (restarted time.Time) {
			used(t, ms)
			restarted = time.Now() // who is connected sees a master again before we look
			for _, s := range ms[:3] {
				s.RestartEmpty()
			}
			return restarted
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5)
			began := c.given(t, ms)
			if began.IsZero() {
				began = time.Now()
			}
			client := ms.client(t, redlock.WithTTL(*longest), redlock.WithRestartGuard(*longest))
			_, err := client.Mutex("orders").TryLock(ctx)
			if !c.waits {
				t.Logf("%s: the first lock after %v", c.name, time.Since(began).Round(time.Millisecond))
				if err != nil {
					t.Error(err)
				}
				return
			}
			mustBe(t, err, guard.ErrQuarantined)
			lease, err := client.Mutex("orders").Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: the first lock after %v", c.name, time.Since(began).Round(time.Millisecond))
			if waited := time.Since(began); waited < *longest {
				t.Errorf("%v was not waited for: %v after %v", *longest, lease, waited)
			}
		})
	}
}

// used has somebody lock and unlock who stays connected.
func used(t *testing.T, ms realMasters) {
	t.Helper()
	declareNew(t, redistest.URLs(ms))
	c := ms.client(t, redlock.WithTTL(*longest), redlock.WithRestartGuard(*longest))
	if err := lock(t, c.Mutex("something else")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}

// longer is eventually for what takes as long as the guard.
func longer(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(*longest + patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", *longest+patience, what)
		}
	}
}
