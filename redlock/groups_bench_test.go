package redlock_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkGroups takes and releases free locks, each caller its own, over one, two and four groups of
// three masters each, with as many callers for each group. They work in turns of 200 ms, b.N turns each, and
// the medians are told. Busy callers do nothing else, so the machine is the limit, and the processor time of
// a pair is what counts: of this process and of all masters. Where one group is busy at a time, no more
// masters share the cores than those of one group. Callers that hold the lock for 2 ms leave the machine
// time, and the rate is what counts.
func BenchmarkGroups(b *testing.B) {
	var sizes []*spreadPairs
	for _, groups := range []int{1, 2, 4} {
		names := []string{"a", "b", "c", "d"}[:groups]
		all := startGroups(b, names...)
		all.spread(b, names...)
		sizes = append(sizes, &spreadPairs{masters: all.all(), groups: all.client(b), times: strconv.Itoa(groups)})
	}
	everybody := func(s *spreadPairs, _ int) []*redlock.Mutex { return slices.Concat(s.locks...) }
	oneGroup := func(s *spreadPairs, turn int) []*redlock.Mutex { return s.locks[turn%len(s.locks)] }
	b.Run("busy", func(b *testing.B) { benchGroups(b, sizes, 32, everybody, 0) })
	b.Run("one-busy", func(b *testing.B) { benchGroups(b, sizes, 32, oneGroup, 0) })
	b.Run("held-2ms", func(b *testing.B) { benchGroups(b, sizes, 4, everybody, 2*time.Millisecond) })
}

// spreadPairs are locks of so many groups, and what was measured of them.
type spreadPairs struct {
	times   string
	masters realMasters
	groups  *redlock.Groups
	locks   [][]*redlock.Mutex // of each group

	client, server, rate []float64 // of each turn: us for a pair, and pairs a second
}

func benchGroups(b *testing.B, sizes []*spreadPairs, callers int, who func(s *spreadPairs, turn int) []*redlock.Mutex, held time.Duration) {
	for _, s := range sizes {
		s.locks = evenly(b, s.groups, callers)
		s.client, s.server, s.rate = nil, nil, nil
	}
	for i := range b.N * len(sizes) {
		s := sizes[i%len(sizes)]
		s.turn(b, who(s, i/len(sizes)), held)
	}
	of := func(s *spreadPairs, i int) float64 { return s.client[i] + s.server[i] }
	for _, s := range sizes {
		var cost, rate []float64
		for i := range b.N {
			cost = append(cost, of(s, i)/of(sizes[0], i))
			rate = append(rate, s.rate[i]/sizes[0].rate[i])
		}
		b.ReportMetric(median(s.client), s.times+"-client-us/pair")
		b.ReportMetric(median(s.server), s.times+"-masters-us/pair")
		b.ReportMetric(median(cost), s.times+"-cpu-x")
		b.ReportMetric(median(s.rate), s.times+"-pairs/s")
		b.ReportMetric(median(rate), s.times+"-pairs-x")
	}
}

// turn has callers lock and unlock for 200 ms.
func (s *spreadPairs) turn(b *testing.B, locks []*redlock.Mutex, held time.Duration) {
	var pairs atomic.Int64
	client, server, began := cpuTime(b), cpuTimeOf(b, s.masters), time.Now()
	together(len(locks), func(caller int) (goOn bool) {
		lease, err := locks[caller].Lock(ctx)
		if err != nil {
			b.Error(err)
			return false
		}
		time.Sleep(held)
		if err := lease.Unlock(ctx); err != nil {
			b.Error(err)
			return false
		}
		pairs.Add(1)
		return time.Since(began) < 200*time.Millisecond
	})
	took := time.Since(began)
	each := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(pairs.Load()) }
	s.client = append(s.client, each(cpuTime(b)-client))
	s.server = append(s.server, each(cpuTimeOf(b, s.masters)-server))
	s.rate = append(s.rate, float64(pairs.Load())/took.Seconds())
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// evenly returns locks that are used, as many in each group.
func evenly(b *testing.B, g *redlock.Groups, each int) (locks [][]*redlock.Mutex) {
	of := map[string][]*redlock.Mutex{}
	for i := 0; len(locks) < len(g.Clients()); i++ {
		name := fmt.Sprint("order:", i)
		group, err := g.Group(name)
		if err != nil || len(of[group]) == each {
			continue
		}
		m := g.Mutex(name, redlock.NoRenew())
		noError(b, lock(b, m).Unlock(ctx))
		if of[group] = append(of[group], m); len(of[group]) == each {
			locks = append(locks, of[group])
		}
	}
	return locks
}

func (g realGroups) all() (all realMasters) {
	for _, ms := range g {
		all = append(all, ms...)
	}
	return all
}
