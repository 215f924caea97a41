package redlock_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
)

var clients = flag.Int("clients", 100, "how many clients BenchmarkRest has")

// BenchmarkRest has clients of five masters do nothing, for as many seconds as -benchtime says: at
// rest, and as if they were in use. 120x are two minutes.
func BenchmarkRest(b *testing.B) {
	for what, rest := range map[string]time.Duration{"at rest": time.Second, "in use": time.Hour} {
		b.Run(what, func(b *testing.B) {
			ms := realMasters(redistest.StartN(b, 5))
			declareNew(b, redistest.URLs(ms))
			opts := []redlock.Option{
				redlock.WithNodeTimeout(second), redlock.WithRestartGuard(30 * second),
				seam.Option(seam.Seams{Rest: rest}).(redlock.Option),
			}
			heap, all := memoryInUse(), make([]*redlock.Client, *clients)
			var dials sync.WaitGroup
			for at := range 64 {
				dials.Go(func() {
					for i := at; i < len(all); i += 64 {
						all[i] = ms.client(b, opts...)
					}
				})
			}
			dials.Wait()
			time.Sleep(3 * time.Second)
			perClient := float64(memoryInUse()-heap) / float64(len(all))
			asked, used, cpu := sentBy(all), ms.info(b, "used_cpu_user")+ms.info(b, "used_cpu_sys"), cpuTime(b)
			b.ResetTimer()
			for range b.N {
				time.Sleep(time.Second)
			}
			b.StopTimer()
			took := b.Elapsed().Seconds()
			each := took * float64(len(ms)*len(all))
			b.ReportMetric(float64(sentBy(all)-asked)/each, "commands/s/client/master")
			b.ReportMetric((ms.info(b, "used_cpu_user")+ms.info(b, "used_cpu_sys")-used)/float64(len(ms))/took*100, "%-of-a-core/master")
			b.ReportMetric((cpuTime(b)-cpu).Seconds()/took*100, "%-of-a-core/clients")
			b.ReportMetric(perClient/1024, "KiB/client")
			b.ReportMetric(ms.info(b, "mem_clients_normal")/float64(len(ms)*len(all))/1024, "KiB/connection")
			b.ReportMetric(ms.info(b, "connected_clients")/float64(len(ms)*len(all)), "connections/client/master")
			b.ReportMetric(0, "ns/op")
			firstLocks(b, all)
		})
	}
}

// sentBy is how many commands the clients have sent.
func sentBy(all []*redlock.Client) (n uint64) {
	for _, c := range all {
		for _, s := range c.Nodes() {
			n += s.Commands
		}
	}
	return n
}

// firstLocks measures how long each client needs for its first lock, one after another.
func firstLocks(b *testing.B, all []*redlock.Client) {
	var took time.Duration
	var leases sync.WaitGroup
	for i, c := range all {
		m := c.Mutex(fmt.Sprint("first-", i))
		began := time.Now()
		lease, err := m.TryLock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
		leases.Go(func() { lease.Unlock(ctx) })
	}
	leases.Wait()
	b.ReportMetric(float64(took.Microseconds())/float64(len(all)), "us/first-lock")
}

func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// info adds up a number that all masters tell.
func (ms realMasters) info(t testing.TB, field string) (sum float64) {
	t.Helper()
	for _, s := range ms {
		for line := range strings.Lines(string(do(t, s, "INFO", "everything").([]byte))) {
			var n float64
			if _, err := fmt.Sscanf(line, field+":%g", &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}
