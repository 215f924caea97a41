package redlock_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkHeld holds a hundred thousand leases of 10 s with the default node
// timeout, for as many seconds as -benchtime says: 600x is ten minutes. None may
// be lost (L22).
func BenchmarkHeld(b *testing.B) {
	const leases, callers = 100_000, 64
	ms := realMasters(redistest.StartN(b, 5))
	var renewed, failed, repaired, lost atomic.Int64
	c := ms.client(b, redlock.WithTTL(10*second), redlock.WithNodeTimeout(defaults.NodeTimeout),
		redlock.WithObserver(func(e redlock.Event) {
			switch {
			case e.Kind == redlock.LeaseLost:
				lost.Add(1)
			case e.Kind == redlock.NodeRepaired:
				repaired.Add(1)
			case e.Kind == redlock.LeaseRenewed && e.Err != nil:
				failed.Add(1)
			case e.Kind == redlock.LeaseRenewed:
				renewed.Add(1)
			}
		}))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < leases; i += callers {
				lock(b, c.Mutex("held-"+strconv.Itoa(i)))
			}
		})
	}
	all.Wait()

	before, cpu := renewed.Load(), cpuTime(b)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	b.ResetTimer()
	for range b.N {
		<-second.C
	}
	b.StopTimer()

	took := b.Elapsed().Seconds()
	b.ReportMetric(float64(renewed.Load()-before)/took, "renewals/s")
	b.ReportMetric((cpuTime(b)-cpu).Seconds()/took*100, "%-of-a-core")
	b.ReportMetric(float64(failed.Load()), "failed")
	b.ReportMetric(float64(repaired.Load()), "repaired")
	b.ReportMetric(float64(lost.Load()), "lost")
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
