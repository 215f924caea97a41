package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/redlock"
)

// dead is how many clients wait and are gone: more than a semaphore of 1 has permits.
const dead = 3

// L18: clients that waited and have gone without a word hold nobody up who waits behind
// them, however many they are.
func TestReal_L18_every_kind_passes_over_those_who_have_gone(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			mustPassOverTheGone(t, k, k.lock)
		})
	}
	both := aKind{"read behind writers",
		func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.RWMutex("read behind writers").RLock(ctx)
		},
		func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.RWMutex("read behind writers").TryLock(ctx)
		},
	}
	t.Run(both.name, func(t *testing.T) {
		mustPassOverTheGone(t, both, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.RWMutex(both.name).Lock(ctx)
		})
	})
}

// mustPassOverTheGone has one client wait behind those that wait by gone, and are gone
// when the lock is released.
func mustPassOverTheGone(t *testing.T, k aKind, gone take) {
	masters := startMasters(t, 5)
	addrs, proxies := masters.behindProxies(t)
	long := redlock.WithTTL(30 * time.Minute) // nobody asks again while the test waits
	lease := k.rival(t, masters.client(t, long))
	eventually(t, "all masters store it", func() bool { return masters.allStore(t) })
	for n := range dead {
		c := dial(t, addrs, long)
		go gone(ctx, c)
		eventually(t, "it is queued", func() bool { return masters.queuedFor(t, k.name, n+1) })
	}
	last, result := masters.client(t, long), make(chan *redlock.Lease, 1)
	go func() { result <- k.holds(t, last) }()
	eventually(t, "the last is queued", func() bool { return masters.queuedFor(t, k.name, dead+1) })
	for _, p := range proxies {
		p.Refuse()
		p.Reset()
	}
	eventually(t, "the masters know who has gone", func() bool { return masters.listeners(t) == len(masters) })

	unlocks(t, lease)

	unlocks(t, arrival(t, "the lock", result))
}

// queuedFor reports whether so many wait for a lock at every master.
func (ms realMasters) queuedFor(t testing.TB, name string, n int) bool {
	t.Helper()
	for _, s := range ms {
		waiting := 0
		for _, queue := range []string{"redlock:queue:", "redlock:permitqueue:"} {
			here, err := redis.Int(s.Do("ZCARD", queue+name))
			if err != nil {
				t.Fatal(err)
			}
			waiting += here
		}
		if waiting != n {
			return false
		}
	}
	return true
}

// listeners returns how many clients listen for their turn, at all masters together, on other
// channels than those of but.
func (ms realMasters) listeners(t testing.TB, but ...string) (n int) {
	t.Helper()
	for _, channel := range ms.channels(t) {
		if !slices.Contains(but, channel) {
			n++
		}
	}
	return n
}

// channels returns the channels of all waiters that listen, once for each master.
func (ms realMasters) channels(t testing.TB) (all []string) {
	t.Helper()
	for _, s := range ms {
		channels, err := redis.Strings(s.Do("PUBSUB", "CHANNELS", "redlock:wait:*"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, channels...)
	}
	return all
}
