package redlock_test

import (
	"slices"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// Of the keys that belong together a master may lose some: evicted, deleted by hand, or
// not written to disk in time. What is stored anew after that has an end, too (found by
// the simulator, seed 11408).
func TestReal_L36_what_is_stored_anew_after_a_loss_has_an_end(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3)
			long, short := ms.client(t, redlock.WithTTL(60*second)), ms.client(t, redlock.WithTTL(10*second))
			if name == "waiters" {
				lock(t, ms.client(t).Mutex("lock"))
			}
			pair.take(t, long)
			eventually(t, "they are stored", func() bool { return ms.store(t, pair.beside) })

			ms.doAll(t, "DEL", pair.beside...)
			pair.take(t, short)
			eventually(t, "they are stored again", func() bool { return ms.store(t, pair.beside) })

			ms.mustLetAllEnd(t)
		})
	}
}

// A master's clock is set back while a script runs. A sorted set then ends, and what is stored of
// its members stays for as long as the clock had been ahead (found by chaos). Those who come next
// have it end with what is theirs.
func TestReal_L65_what_a_clock_that_was_set_back_has_left_ends(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3)
			for _, key := range pair.beside {
				ms.doAll(t, "HSET", key, "dead", "1 - dead")
				ms.doAll(t, "EXPIRE", key, 3600)
			}
			if name == "waiters" {
				lock(t, ms.client(t).Mutex("lock"))
			}
			pair.take(t, ms.client(t, redlock.WithTTL(10*second)))

			for _, key := range pair.beside {
				eventually(t, "it ends in time", func() bool {
					return !slices.ContainsFunc(ms, func(s *redistest.Server) bool { return do(t, s, "PTTL", key).(int64) > 10_000 })
				})
			}
		})
	}
}

// pairs are sorted sets whose members have more beside them, by kind: which keys that is, and who
// stores them.
var pairs = map[string]struct {
	beside []any
	take   func(t *testing.T, c *redlock.Client)
}{
	"permits": {[]any{"redlock:owners:lock", "redlock:held:lock"}, func(t *testing.T, c *redlock.Client) {
		if _, err := c.Semaphore("lock", 3).Acquire(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}},
	"readers": {[]any{"redlock:reading:lock"}, func(t *testing.T, c *redlock.Client) {
		if _, err := c.RWMutex("lock").RLock(ctx); err != nil {
			t.Fatal(err)
		}
	}},
	"waiters": {[]any{"redlock:wait:lock"}, func(t *testing.T, c *redlock.Client) {
		_ = lockLater(t, c.Mutex("lock"))
	}},
}

// store reports whether all masters have all of the keys.
func (ms realMasters) store(t testing.TB, keys []any) bool {
	t.Helper()
	for _, s := range ms {
		if do(t, s, "EXISTS", keys...) != int64(len(keys)) {
			return false
		}
	}
	return true
}

// mustLetAllEnd wants every key but the markers to have a TTL.
func (ms realMasters) mustLetAllEnd(t testing.TB) {
	t.Helper()
	for _, s := range ms {
		for _, key := range keysOf(t, s) {
			if key != "redlock:marker" && do(t, s, "PTTL", key) == int64(-1) {
				t.Errorf("%s keeps %q for ever", s.Addr(), key)
			}
		}
	}
}
