package redlock_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkKinds takes and releases a free lock of each kind on five masters, each
// caller its own. Servers and client share the machine, so the ratios to the plain
// Mutex of the same run are what counts. Where others use the machine, too, the
// processor time of a pair tells more than its latency.
func BenchmarkKinds(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	// A node timeout that no scheduling on a busy machine reaches.
	c, err := redlock.Dial(ctx, redistest.URLs(servers), redlock.WithNodeTimeout(2*second))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	for _, callers := range []int{1, 64} {
		for _, kind := range benchKinds {
			locks := make([]func(context.Context) (*redlock.Lease, error), callers)
			for i := range locks {
				locks[i] = kind.lock(c, "bench-"+strconv.Itoa(i)+"-"+kind.name)
			}
			b.Run(kind.name+"/callers="+strconv.Itoa(callers), func(b *testing.B) {
				took := make([][]time.Duration, callers)
				client, masters := cpuTime(b), cpuTimeOf(b, servers)
				benchPairs(b, callers, func(caller int) error {
					began := time.Now()
					lease, err := locks[caller](ctx)
					if err != nil {
						return err
					}
					err = lease.Unlock(ctx)
					took[caller] = append(took[caller], time.Since(began))
					return err
				})
				b.ReportMetric(float64((cpuTime(b)-client).Nanoseconds())/1000/float64(b.N), "client-µs")
				b.ReportMetric(float64((cpuTimeOf(b, servers)-masters).Nanoseconds())/1000/float64(b.N), "masters-µs")
				all := slices.Concat(took...)
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, "p50-µs")
			})
		}
	}
}

// cpuTimeOf returns the processor time that the servers have used.
func cpuTimeOf(b *testing.B, servers []*redistest.Server) (used time.Duration) {
	for _, s := range servers {
		text, err := redis.String(s.Do("INFO", "cpu"))
		if err != nil {
			b.Fatal(err)
		}
		for _, part := range usedCPU.FindAllStringSubmatch(text, -1) {
			seconds, _ := strconv.ParseFloat(part[1], 64)
			used += time.Duration(seconds * float64(time.Second))
		}
	}
	return used
}

var usedCPU = regexp.MustCompile(`(?m)^used_cpu_(?:sys|user):([\d.]+)`)

// benchKinds makes a lock of each kind.
var benchKinds = []struct {
	name string
	lock func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error)
}{
	{"plain", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.Mutex(name).Lock
	}},
	{"fenced", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.Mutex(name, redlock.Fenced()).Lock
	}},
	{"fair", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.Mutex(name, redlock.Fair()).Lock
	}},
	{"multi-3", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.Multi([]string{name + "a", name + "b", name + "c"}).Lock
	}},
	{"write", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.RWMutex(name).Lock
	}},
	{"read", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		return c.RWMutex(name).RLock
	}},
	{"semaphore-5", func(c *redlock.Client, name string) func(context.Context) (*redlock.Lease, error) {
		s := c.Semaphore(name, 5)
		return func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, 1) }
	}},
}
