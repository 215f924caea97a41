package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkGroups takes and releases free locks, each caller its own, over one, two and four groups of
// three masters each, with as many callers for each group. Busy callers do nothing else, so the machine
// is the limit, and the processor time of a pair is what counts: of this process and of all masters.
// Callers that hold the lock for 2 ms leave the machine time, and the rate is what counts.
func BenchmarkGroups(b *testing.B) {
	for _, c := range []struct {
		name    string
		callers int // for each group
		held    time.Duration
	}{{"busy", 32, 0}, {"held 2ms", 4, 2 * time.Millisecond}} {
		for _, groups := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/groups=%d", c.name, groups), func(b *testing.B) {
				names := []string{"a", "b", "c", "d"}[:groups]
				all := startGroups(b, names...)
				all.spread(b, names...)
				g := all.client(b)
				locks := evenly(b, g, c.callers)
				clients, masters := cpuTime(b), cpuTimeOf(b, all.all())
				benchPairs(b, len(locks), func(caller int) error {
					lease, err := locks[caller].Lock(ctx)
					if err != nil {
						return err
					}
					time.Sleep(c.held)
					return lease.Unlock(ctx)
				})
				b.ReportMetric(float64((cpuTime(b)-clients).Microseconds())/float64(b.N), "client-us/pair")
				b.ReportMetric(float64((cpuTimeOf(b, all.all())-masters).Microseconds())/float64(b.N), "masters-us/pair")
			})
		}
	}
}

// evenly returns locks that are used, as many in each group.
func evenly(b *testing.B, g *redlock.Groups, each int) (locks []*redlock.Mutex) {
	have := map[string]int{}
	for i := 0; len(locks) < each*len(g.Clients()); i++ {
		name := fmt.Sprint("order:", i)
		group, err := g.Group(name)
		if err != nil || have[group] == each {
			continue
		}
		have[group]++
		locks = append(locks, g.Mutex(name, redlock.NoRenew()))
		noError(b, lock(b, locks[len(locks)-1]).Unlock(ctx))
	}
	return locks
}

func (g realGroups) all() (all realMasters) {
	for _, ms := range g {
		all = append(all, ms...)
	}
	return all
}
