package redlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkHandOff has eight clients, each with connections of its own, take
// one lock in turn, with a millisecond of work inside and five outside. It
// reports the gap between a release and the next acquisition, and the commands
// that the five masters ran for each acquisition.
func BenchmarkHandOff(b *testing.B) {
	for _, think := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run("think="+think.String(), func(b *testing.B) { benchHandOff(b, 8, think, 0) })
	}
}

// BenchmarkTurns is BenchmarkHandOff with two clients, which take turns: with and without Cached, beside the
// masters and 10 ms away.
func BenchmarkTurns(b *testing.B) {
	for _, away := range []time.Duration{0, 10 * time.Millisecond} {
		b.Run("away="+away.String()+"/plain", func(b *testing.B) { benchHandOff(b, 2, 0, away) })
		b.Run("away="+away.String()+"/cached", func(b *testing.B) { benchHandOff(b, 2, 0, away, redlock.Cached()) })
	}
}

// contenders are clients with connections of their own, which want one lock.
func contenders(b *testing.B, addrs []string, clients int, name string, opts ...redlock.MutexOption) []*redlock.Mutex {
	mutexes := make([]*redlock.Mutex, clients)
	for i := range mutexes {
		c, err := redlock.Dial(context.Background(), addrs, redlock.WithRestartGuard(0))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		mutexes[i] = c.Mutex(name, opts...)
	}
	return mutexes
}

func benchHandOff(b *testing.B, clients int, think, away time.Duration, opts ...redlock.MutexOption) {
	servers := redistest.StartN(b, 5)
	addrs := redistest.URLs(servers)
	if away > 0 {
		var proxies []*faultproxy.Proxy
		addrs, proxies = realMasters(servers).behindProxies(b)
		for _, p := range proxies {
			p.Delay(faultproxy.Requests, away/2)
			p.Delay(faultproxy.Replies, away/2)
		}
	}
	mutexes := contenders(b, addrs, clients, "hand-off", opts...)
	before := commandsRun(b, servers)
	var mu sync.Mutex
	var gaps []time.Duration
	var released time.Time
	left := b.N
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, m := range mutexes {
		wg.Go(func() {
			for {
				lease, err := m.Lock(context.Background())
				now := time.Now()
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				if !released.IsZero() {
					gaps = append(gaps, now.Sub(released))
				}
				left--
				over := left < 0
				mu.Unlock()
				time.Sleep(time.Millisecond) // what the lock is for
				mu.Lock()
				released = time.Now()
				mu.Unlock()
				lease.Unlock(context.Background())
				if over {
					return
				}
				if think > 0 {
					time.Sleep(think/2 + rand.N(think))
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(gaps)
	b.ReportMetric(float64(gaps[len(gaps)/2].Microseconds()), "gap-p50-µs")
	b.ReportMetric(float64(gaps[len(gaps)*99/100].Microseconds()), "gap-p99-µs")
	long, _ := slices.BinarySearch(gaps, time.Millisecond)
	b.ReportMetric(100*float64(len(gaps)-long)/float64(len(gaps)), "%-over-1ms")
	b.ReportMetric(float64(commandsRun(b, servers)-before)/float64(len(gaps)+1), "commands/acquisition")
}

// commandsRun counts the scripts that the servers ran, by their own count: asks,
// releases (several in one call count once) and renewals. SET NX is left out,
// because scripts call SET too; it is only sent where nobody has waited lately.
func commandsRun(b *testing.B, servers []*redistest.Server) (n int) {
	for _, s := range servers {
		info, err := redis.String(s.Do("INFO", "commandstats"))
		if err != nil {
			b.Fatal(err)
		}
		for _, line := range strings.Fields(info) {
			name, stats, _ := strings.Cut(line, ":calls=")
			if !slices.Contains([]string{"cmdstat_evalsha", "cmdstat_eval"}, name) {
				continue
			}
			calls, _, _ := strings.Cut(stats, ",")
			c, _ := strconv.Atoi(calls)
			n += c
		}
	}
	return n
}
