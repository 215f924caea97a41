package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkGuards is what the restart guard and the clock guard cost: two clients,
// with them and without, lock and unlock in turns of 50 ms, b.N turns each, so that
// whatever else the machine does meets both. Told are the medians of what the turns
// of one to those of the other are, of the pairs done and of the median time of a
// pair.
func BenchmarkGuards(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	patient := redlock.WithNodeTimeout(2 * time.Second) // the machine may be busy
	guarded := redlockPairs(b, servers, patient)
	unguarded := redlockPairs(b, servers, patient, redlock.WithRestartGuard(0), redlock.WithClockGuard(0))
	for _, callers := range []int{1, 64} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			var done, took []float64
			turn(b, callers, guarded)
			turn(b, callers, unguarded)
			for i := range b.N {
				first, second := guarded, unguarded
				if i%2 > 0 {
					first, second = second, first
				}
				with, without := turn(b, callers, first), turn(b, callers, second)
				if b.Failed() {
					return
				}
				if i%2 > 0 {
					with, without = without, with
				}
				done = append(done, float64(len(with))/float64(len(without)))
				took = append(took, float64(with[len(with)/2])/float64(without[len(without)/2]))
			}
			slices.Sort(done)
			slices.Sort(took)
			b.ReportMetric(done[len(done)/2], "pairs-x")
			b.ReportMetric(took[len(took)/2], "p50-x")
			b.ReportMetric(done[len(done)/4], "pairs-x-lower-quarter")
			b.ReportMetric(done[len(done)*3/4], "pairs-x-upper-quarter")
		})
	}
}

// turn has callers lock and unlock for 50 ms, and returns what each pair took, the
// quickest first.
func turn(b *testing.B, callers int, pair func(caller int) error) (took []time.Duration) {
	end := time.Now().Add(50 * time.Millisecond)
	of := make([][]time.Duration, callers)
	together(callers, func(caller int) (goOn bool) {
		began := time.Now()
		if err := pair(caller); err != nil {
			b.Error(err)
			return false
		}
		now := time.Now()
		of[caller] = append(of[caller], now.Sub(began))
		return now.Before(end)
	})
	took = slices.Concat(of...)
	slices.Sort(took)
	return took
}

// refusals counts what the guards refuse.
type refusals struct{ pairs, refused, kept atomic.Int64 }

// Observe counts the votes that were refused, and the masters that were kept out.
func (r *refusals) Observe(e redlock.Event) {
	if e.Kind == node.EventQuarantined {
		r.kept.Add(1)
	}
	for _, v := range e.Votes {
		if errors.Is(v.Err, guard.ErrQuarantined) {
			r.refused.Add(1)
		}
	}
}

// pair takes a lock, if it is free, and gives it back.
func (r *refusals) pair(c *redlock.Client, name string) {
	lease, err := c.Mutex(name).TryLock(ctx)
	if err == nil {
		r.pairs.Add(1)
		lease.Unlock(ctx)
	}
}

func (r *refusals) report(b *testing.B) {
	b.ReportMetric(float64(r.pairs.Load()), "pairs")
	b.ReportMetric(float64(r.refused.Load()), "refused-votes")
	b.ReportMetric(float64(r.kept.Load()), "masters-kept-out")
}

// BenchmarkRefusals is how many votes the guards refuse without a reason, under load: b.N
// turns of 50 ms for each client, which is new.
func BenchmarkRefusals(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	for _, timeout := range []time.Duration{50 * time.Millisecond, time.Second} {
		for _, callers := range []int{64, 1000} {
			b.Run(fmt.Sprintf("timeout=%v/callers=%d", timeout, callers), func(b *testing.B) {
				var r refusals
				c := dial(b, redistest.URLs(servers), redlock.WithNodeTimeout(timeout), redlock.WithObserver(r.Observe))
				end := time.Now().Add(time.Duration(b.N) * 50 * time.Millisecond)
				together(callers, func(caller int) (goOn bool) {
					r.pair(c, "refusals-"+strconv.Itoa(caller))
					return time.Now().Before(end)
				})
				r.report(b)
			})
		}
	}
}

// BenchmarkSlewing is how many votes the guards refuse while clocks are slewed, for b.N seconds:
// each of five masters is ahead and behind by turns of 30 s, and no two turn together. One client
// stays; every ten seconds another one comes.
func BenchmarkSlewing(b *testing.B) {
	for _, rate := range []float64{0.0005, 0.01} {
		b.Run(fmt.Sprintf("rate=%v", rate), func(b *testing.B) {
			servers := redistest.StartN(b, 5, redistest.Faketime())
			declareNew(b, redistest.URLs(servers))
			var r refusals
			dial := func() *redlock.Client {
				return dial(b, redistest.URLs(servers), redlock.WithTTL(2*time.Second), redlock.WithRestartGuard(2*time.Second),
					redlock.WithNodeTimeout(500*time.Millisecond), redlock.WithObserver(r.Observe))
			}
			stays := dial()
			for second := range b.N {
				for i, m := range servers {
					if turn := second + 12*i; second == 0 || turn%30 == 0 {
						m.SetClockRate(1 + rate*float64(1-turn/30%2*2))
					}
				}
				if second%10 == 5 {
					c := dial()
					r.pair(c, "slewing")
					c.Close()
				}
				for range 10 {
					r.pair(stays, "slewing")
					time.Sleep(100 * time.Millisecond)
				}
			}
			r.report(b)
		})
	}
}
