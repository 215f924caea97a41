package redlock_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkHung compares pairs of Lock and Unlock on five masters of which some
// hang with those on five healthy ones, in one run: p50x and p99x are the ratios
// of the latencies. "Fresh" is the first second, in which the connections to the
// hung masters are still taken for sound; "known" is after that.
func BenchmarkHung(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		for _, hung := range []int{1, 2} {
			for _, known := range []bool{false, true} {
				name := map[bool]string{false: "fresh", true: "known"}[known]
				b.Run(fmt.Sprintf("callers=%d/hung=%d/%s", callers, hung, name), func(b *testing.B) { benchHung(b, callers, hung, known) })
			}
		}
	}
}

func benchHung(b *testing.B, callers, hung int, known bool) {
	ms := startMasters(b, 5)
	c := ms.client(b, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(defaults.NodeTimeout))
	pair := lockPairs(c)
	// pairs has every caller take and release a lock of its own until enough says so.
	pairs := func(into *[]time.Duration, enough func(pairs int64) bool) {
		var next atomic.Int64
		var mu sync.Mutex
		together(callers, func(caller int) (goOn bool) {
			if enough(next.Add(1)) {
				return false
			}
			began := time.Now()
			err := pair(caller)
			took := time.Since(began)
			if err != nil {
				b.Error(err)
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			*into = append(*into, took)
			return true
		})
		if b.Failed() {
			b.FailNow()
		}
	}
	var healthy, degraded, warm []time.Duration
	pairs(&warm, func(n int64) bool { return n > int64(100*callers) })
	for len(healthy) < b.N { // in turn, because a shared machine has its moods
		turn := min(1000*callers, b.N-len(healthy))
		pairs(&healthy, func(n int64) bool { return n > int64(turn) })
		for _, s := range ms[:hung] {
			s.Stop()
		}
		for known && !givenUp(b, c, hung) {
			runtime.Gosched()
		}
		began := time.Now()
		pairs(&degraded, func(n int64) bool { return n > int64(turn) || !known && time.Since(began) > 900*time.Millisecond })
		for _, s := range ms[:hung] {
			s.Continue()
		}
		eventually(b, "all masters answer", func() bool {
			h, err := c.Inspect(ctx, "bench")
			return err == nil && !slices.ContainsFunc(h.Nodes, func(v redlock.NodeView) bool { return v.Err != nil })
		})
	}
	slices.Sort(healthy)
	slices.Sort(degraded)
	b.ReportMetric(0, "ns/op") // has the waiting in it
	for _, percent := range []int{50, 99} {
		h, d := healthy[len(healthy)*percent/100], degraded[len(degraded)*percent/100]
		b.ReportMetric(float64(d.Nanoseconds())/1000, fmt.Sprintf("p%d-µs", percent))
		b.ReportMetric(float64(d)/float64(h), fmt.Sprintf("p%dx", percent))
	}
}
