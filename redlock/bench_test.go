package redlock_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redsync "github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkPair takes and releases a free lock, each caller its own: on five
// masters with this library, with and without the restart guard, which reads a
// marker with every vote, on one with plain redigo, which is the floor, and on
// five with redsync. Servers and client share the machine, so the ratios
// between the lines of one run are what counts.
func BenchmarkPair(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	for _, callers := range []int{1, 64} {
		suffix := "/callers=" + strconv.Itoa(callers)
		b.Run("redigo-1"+suffix, func(b *testing.B) { benchPairs(b, callers, redigoPairs(b, servers[0])) })
		b.Run("redlock-5"+suffix, func(b *testing.B) { benchPairs(b, callers, redlockPairs(b, servers)) })
		b.Run("redlock-5-unguarded"+suffix, func(b *testing.B) {
			benchPairs(b, callers, redlockPairs(b, servers, redlock.WithRestartGuard(0)))
		})
		b.Run("redsync-5"+suffix, func(b *testing.B) { benchPairs(b, callers, redsyncPairs(b, servers)) })
	}
}

// benchPairs runs b.N pairs in the given number of goroutines.
func benchPairs(b *testing.B, callers int, pair func(caller int) error) {
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	together(callers, func(caller int) (goOn bool) {
		if next.Add(1) > int64(b.N) {
			return false
		}
		if err := pair(caller); err != nil {
			b.Error(err)
			return false
		}
		return true
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

// together calls f again and again in so many goroutines, each until it says no.
func together(callers int, f func(caller int) (goOn bool)) {
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for f(caller) {
			}
		})
	}
	wg.Wait()
}

func redlockPairs(b *testing.B, servers []*redistest.Server, opts ...redlock.Option) func(int) error {
	c, err := redlock.Dial(context.Background(), redistest.URLs(servers), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return lockPairs(c)
}

// lockPairs is for up to 64 callers, each with a lock of its own.
func lockPairs(c *redlock.Client) func(caller int) error {
	mutexes := make([]*redlock.Mutex, 64)
	for i := range mutexes {
		mutexes[i] = c.Mutex("bench-" + strconv.Itoa(i))
	}
	return func(caller int) error {
		lease, err := mutexes[caller].Lock(context.Background())
		if err != nil {
			return err
		}
		return lease.Unlock(context.Background())
	}
}

var unlockScript = redis.NewScript(1, `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

func redigoPairs(b *testing.B, server *redistest.Server) func(int) error {
	pool := newPool(b, server)
	return func(caller int) error {
		conn := pool.Get()
		defer conn.Close()
		key := "bench-" + strconv.Itoa(caller)
		if _, err := redis.String(conn.Do("SET", key, "value", "NX", "PX", 30000)); err != nil {
			return err
		}
		_, err := unlockScript.Do(conn, key, "value")
		return err
	}
}

func redsyncPairs(b *testing.B, servers []*redistest.Server) func(int) error {
	pools := make([]redsyncredis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = redsyncredigo.NewPool(newPool(b, s))
	}
	rs := redsync.New(pools...)
	return func(caller int) error {
		m := rs.NewMutex("bench-"+strconv.Itoa(caller), redsync.WithExpiry(30*time.Second))
		if err := m.Lock(); err != nil {
			return err
		}
		_, err := m.Unlock()
		return err
	}
}

func newPool(b testing.TB, s *redistest.Server) *redis.Pool {
	pool := &redis.Pool{MaxIdle: 64, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }}
	b.Cleanup(func() { pool.Close() })
	return pool
}
