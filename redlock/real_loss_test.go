package redlock_test

import (
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

// Of the keys that belong together a master may lose some: evicted, deleted by hand, or
// not written to disk in time. What is stored anew after that has an end, too (found by
// the simulator, seed 11408).
func TestReal_L36_what_is_stored_anew_after_a_loss_has_an_end(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost []any // of the keys that belong together
		take func(t *testing.T, c *redlock.Client)
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3)
			long, short := ms.client(t, redlock.WithTTL(60*second)), ms.client(t, redlock.WithTTL(10*second))
			if name == "waiters" {
				lock(t, ms.client(t).Mutex("lock"))
			}
			c.take(t, long)
			eventually(t, "they are stored", func() bool { return ms.store(t, c.lost) })

			ms.doAll(t, "DEL", c.lost...)
			c.take(t, short)
			eventually(t, "they are stored again", func() bool { return ms.store(t, c.lost) })

			ms.mustLetAllEnd(t)
		})
	}
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
