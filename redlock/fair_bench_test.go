package redlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkFairness has fifty clients, each with connections of its own, take one
// lock again and again: a plain one, and a fair one. It reports how long they wait,
// and by how many others, who came later, each was passed.
func BenchmarkFairness(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchFairness(b) })
	b.Run("fair", func(b *testing.B) { benchFairness(b, redlock.Fair()) })
}

// wait is one acquisition of a lock.
type wait struct{ from, until time.Duration }

func benchFairness(b *testing.B, opts ...redlock.MutexOption) {
	const clients = 50
	servers := redistest.StartN(b, 5)
	mutexes := contenders(b, redistest.URLs(servers), clients, "fairness", opts...)
	before := commandsRun(b, servers)
	var mu sync.Mutex
	var waits []wait // in the order in which they ended; not the first of a client, which connects
	var all sync.WaitGroup
	began := time.Now()
	b.ResetTimer()
	for _, m := range mutexes {
		all.Go(func() {
			for first := true; ; first = false {
				from := time.Since(began)
				lease, err := m.Lock(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				if !first {
					waits = append(waits, wait{from, time.Since(began)})
				}
				over := len(waits) >= b.N
				mu.Unlock()
				lease.Unlock(context.Background())
				if over {
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	reportWaits(b, waits)
	b.ReportMetric(float64(commandsRun(b, servers)-before)/float64(len(waits)+clients), "commands/acquisition")
}

func reportWaits(b *testing.B, waits []wait) {
	long := make([]time.Duration, len(waits))
	passed := make([]int, len(waits))
	for i, w := range waits {
		long[i] = w.until - w.from
		for _, before := range waits[:i] {
			if before.from > w.from {
				passed[i]++
			}
		}
	}
	slices.Sort(long)
	slices.Sort(passed)
	p50, p99 := long[len(long)/2], long[len(long)*99/100]
	b.ReportMetric(float64(p50.Microseconds())/1000, "wait-p50-ms")
	b.ReportMetric(float64(p99.Microseconds())/1000, "wait-p99-ms")
	b.ReportMetric(float64(p99)/float64(p50), "p99/p50")
	b.ReportMetric(float64(passed[len(passed)*99/100]), "passed-by-p99")
	b.ReportMetric(float64(passed[len(passed)-1]), "passed-by-max")
}
