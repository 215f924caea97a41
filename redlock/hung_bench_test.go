package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkHung compares pairs of Lock and Unlock on five masters of which some
// hang with those on five healthy ones, in one run: p50x and p99x are the ratios
// of the latencies. "Fresh" is the first second, in which the connections to the
// hung masters are still taken for sound; "known" is after that.
func BenchmarkHung(b *testing.B) {
	for _, hung := range []int{1, 2} {
		for _, known := range []bool{false, true} {
			name := map[bool]string{false: "fresh", true: "known"}[known]
			b.Run(fmt.Sprintf("hung=%d/%s", hung, name), func(b *testing.B) { benchHung(b, hung, known) })
		}
	}
}

func benchHung(b *testing.B, hung int, known bool) {
	ms := startMasters(b, 5)
	c := ms.client(b, redlock.WithTTL(time.Minute))
	m := c.Mutex("bench")
	pair := func() time.Duration {
		began := time.Now()
		lease, err := m.Lock(context.Background())
		if err == nil {
			err = lease.Unlock(context.Background())
		}
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for range 100 {
		pair()
	}
	var healthy, degraded []time.Duration
	for len(healthy) < b.N { // in turn, because a shared machine has its moods
		turn := min(1000, b.N-len(healthy))
		for range turn {
			healthy = append(healthy, pair())
		}
		for _, s := range ms[:hung] {
			s.Stop()
		}
		for known && !givenUp(b, c, hung) {
			runtime.Gosched()
		}
		for began := time.Now(); turn > 0 && (known || time.Since(began) < 900*time.Millisecond); turn-- {
			degraded = append(degraded, pair())
		}
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
