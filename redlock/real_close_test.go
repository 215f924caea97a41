package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// left returns every lock that a master stores. What else this library stores
// goes by itself.
func (ms realMasters) left(t testing.TB) (keys []string) {
	t.Helper()
	for _, s := range ms {
		more, err := redis.Strings(s.Do("KEYS", "*"))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, slices.DeleteFunc(more, func(key string) bool { return strings.HasPrefix(key, "redlock:") })...)
	}
	return keys
}

func TestReal_L16_Close_ends_those_who_wait(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	lock(t, ms.client(t, redlock.WithTTL(time.Minute)).Mutex("orders"))
	for range 10 {
		events := &diary{}
		c := ms.client(t, redlock.WithObserver(events.observe))
		result := make(chan error, 1)
		go func() {
			_, err := c.Mutex("orders").Lock(ctx)
			result <- err
		}()
		eventually(t, "an attempt has failed", func() bool {
			events.mu.Lock()
			defer events.mu.Unlock()
			return len(events.events) > 0
		})

		c.Close()

		mustBe(t, arrival(t, "the end of the wait", result), redlock.ErrClosed)
	}
}

// A waiter was handed a fenced lock, and the masters are raising its token when the client is closed. They
// answer when its grants are too old to count.
func TestReal_L16_Close_ends_a_wait_whose_grants_come_to_nothing(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	addrs, proxies := ms.behindProxies(t)
	held := lock(t, ms.client(t, redlock.WithTTL(20*second)).Mutex("orders", redlock.Fenced()))
	c := dial(t, addrs, redlock.WithTTL(20*second))
	over, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders", redlock.Fenced()).Lock(ctx)
		over <- err
	}()
	eventually(t, "it waits", func() bool { return ms.queuedFor(t, "orders", 1) })
	raised := make([]*faultproxy.Hold, len(ms))
	for i, s := range ms { // the counters differ: a second question is needed
		do(t, s, "SET", "redlock:token:orders", time.Now().Add(time.Duration(i+1)*time.Hour).UnixMicro())
		raised[i] = proxies[i].HoldNext(faultproxy.Requests, faultproxy.Command("", "redlock:token:orders"))
	}
	time.Sleep(1700 * time.Millisecond) // its grants are as old as the ask, or as a message may be
	unlocks(t, held)
	select { // the third has the highest counter
	case <-raised[0].Held():
	case <-raised[1].Held():
	case <-time.After(patience):
		t.Fatal("no second question")
	}
	go func() { closed <- c.Close() }()
	time.Sleep(1200 * time.Millisecond)
	for _, h := range raised {
		h.Release()
	}
	mustBe(t, arrival(t, "the end of the wait", over), redlock.ErrClosed)
	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
}

// Callers take and keep locks, and wait for those of others, while the client is
// closed. No master is left with a key that nobody holds.
func TestReal_L17_Close_leaves_nothing(t *testing.T) {
	t.Parallel()
	const callers, closes = 16, 10
	ms := startMasters(t, 5)
	for round := range closes {
		c := ms.client(t, redlock.WithTTL(time.Minute))
		var all sync.WaitGroup
		begun := make(chan struct{}, callers)
		for caller := range callers {
			all.Go(func() {
				for i := 0; ; i++ {
					_, err := c.Mutex(fmt.Sprint("orders-", round, "-", caller/2, "-", i)).Lock(ctx)
					if i == 0 {
						begun <- struct{}{}
					}
					if errors.Is(err, redlock.ErrClosed) {
						return
					}
				}
			})
		}
		for range callers / 2 { // the others wait
			arrival(t, "a lock", begun)
		}

		c.Close()

		all.Wait()
		if keys := ms.left(t); len(keys) > 0 {
			t.Fatalf("left by the %d. Close: %q", round+1, keys)
		}
	}
}

// BenchmarkClose closes a client with a hundred thousand leases, and counts the
// keys that are left.
func BenchmarkClose(b *testing.B) {
	const leases, callers = 100_000, 64
	ms := realMasters(redistest.StartN(b, 5))
	var left int
	for range b.N {
		b.StopTimer()
		c := ms.client(b, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(defaults.NodeTimeout))
		var next sync.WaitGroup
		for caller := range callers {
			next.Go(func() {
				for i := caller; i < leases; i += callers {
					lock(b, c.Mutex("orders-"+strconv.Itoa(i)))
				}
			})
		}
		next.Wait()
		b.StartTimer()
		c.Close()
		b.StopTimer()
		left += len(ms.left(b))
		ms.doAll(b, "FLUSHALL")
	}
	b.ReportMetric(float64(left)/float64(b.N), "keys-left")
}
