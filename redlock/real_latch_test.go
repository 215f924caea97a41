package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_latch_opens_for_all_who_wait_when_so_many_have_arrived(t *testing.T) {
	masters := startMasters(t, 5)
	const jobs = 8
	var waiting, all sync.WaitGroup
	for range 3 {
		l := masters.client(t).Latch("jobs", jobs)
		waiting.Go(func() {
			if err := l.Wait(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range jobs {
		l := masters.client(t).Latch("jobs", jobs)
		all.Go(func() {
			for range 2 { // the answer may have been lost
				if err := l.Arrive(ctx, fmt.Sprint("job ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	waiting.Wait()

	l := masters.client(t).Latch("jobs", jobs)
	if n, err := l.Count(ctx); n != jobs || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
	if err := l.Wait(ctx); err != nil {
		t.Errorf("who comes late: %v", err)
	}
	if n, err := l.Generation("2").Count(ctx); n != 0 || err != nil {
		t.Errorf("the next generation: %d, %v", n, err)
	}
}

// One after the other every master loses its memory; each is told again by a count.
func TestReal_latch_counts_never_go_back_when_masters_forget_one_by_one(t *testing.T) {
	masters := startMasters(t, 5)
	l := masters.client(t).Latch("jobs", 10)
	for i := range 4 {
		if err := l.Arrive(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range masters {
		do(t, s, "FLUSHALL")
		other := masters[(i+1)%5]
		other.Stop()
		n, err := l.Count(ctx)
		other.Continue()
		if n != 4 || err != nil {
			t.Fatalf("after master %d forgot: %d have arrived, %v", i, n, err)
		}
		eventually(t, "it has learned who arrived", func() bool { return do(t, s, "EXISTS", "redlock:arrivals::jobs") == int64(1) })
	}
}

func TestReal_latch_bad_input(t *testing.T) {
	c := startMasters(t, 3).client(t)
	for _, err := range []error{
		c.Latch("x", 0).Arrive(ctx, "a"), c.Latch("", 1).Arrive(ctx, "a"), c.Latch("x", 1).Arrive(ctx, ""), c.Latch("x", 1).Arrive(ctx, "."),
		c.Latch("x", 0).Wait(ctx),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	done := make(chan error)
	go func() { done <- c.Latch("x", 1).Wait(ctx) }()
	c.Close()
	if err := arrival(t, "Wait returns", done); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("%v, want closed", err)
	}
}

// A latch opens with the last arrival, and not with the one before.
func TestReal_latch_stays_shut_while_one_is_missing(t *testing.T) {
	l := startMasters(t, 3).client(t).Latch("jobs", 2)
	if err := l.Arrive(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := l.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("let through after one of two: %v", err)
	}
	if err := errors.Join(l.Arrive(ctx, "b"), l.Wait(ctx)); err != nil {
		t.Error(err)
	}
}

// A name and a generation must not come to the key of another latch.
func TestReal_latch_generation_with_a_colon_is_refused(t *testing.T) {
	c := startMasters(t, 1).client(t)
	l := c.Latch("c", 1).Generation("a:b")
	for _, err := range []error{l.Arrive(ctx, "x"), l.Wait(ctx)} {
		mustName(t, err, []string{`Generation("a:b")`, "colon"})
	}
}

// More arrivals than Lua can pass on at once.
func TestReal_latch_counts_ten_thousand_arrivals_where_the_masters_differ(t *testing.T) {
	masters := startMasters(t, 3)
	l := masters.client(t).Latch("jobs", wire.MaxArrivals)
	if err := l.Arrive(ctx, "0"); err != nil {
		t.Fatal(err)
	}
	ids := redis.Args{"redlock:latch::jobs"}
	for i := range 9_999 {
		ids = ids.Add(fmt.Sprint("job ", i))
	}
	do(t, masters[0], "SADD", ids...)
	do(t, masters[1], "SADD", ids...)

	n, err := l.Count(ctx)

	if n != 10_000 || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
}

// What a client writes back can be late: the master it is for may have lost its memory
// meanwhile. Then it must not take that for all there was.
func TestReal_latch_forgets_no_arrival_for_what_is_written_back_late(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	guarded := []redlock.Option{redlock.WithTTL(2 * second), redlock.WithRestartGuard(2 * second)}
	declareNew(t, redistest.URLs(masters), guarded...)
	client := masters.client(t, guarded...)
	l := client.Latch("jobs", 10)
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	masters.mustBeWhole(t, "redlock:arrivals::jobs")

	// A count is on its way to the first master when that is all there is to know.
	addrs, links := masters.behindProxies(t)
	late := dial(t, addrs, guarded...)
	if n, err := late.Latch("jobs", 10).Count(ctx); n != 1 || err != nil {
		t.Fatalf("%d have arrived, %v", n, err)
	}
	written := links[0].HoldNext(faultproxy.Requests, faultproxy.Command("", "redlock:latch::jobs"))
	if n, err := late.Latch("jobs", 10).Count(ctx); n != 1 || err != nil {
		t.Fatalf("%d have arrived, %v", n, err)
	}
	arrive(t, written)
	masters.arriveAtThree(t, l, "second")
	do(t, masters[0], "FLUSHALL")
	sent := total(links[0].Stats().Received)
	written.Release()
	eventually(t, "it goes on", func() bool { return total(links[0].Stats().Delivered) >= sent })

	masters.mustCountTwo(t, guarded)
}

// A master that comes back with an old snapshot says that it knew everybody, and did so
// then.
func TestReal_latch_forgets_no_arrival_for_an_old_snapshot(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5, redistest.Snapshots())
	guarded := []redlock.Option{redlock.WithTTL(2 * second), redlock.WithRestartGuard(2 * second)}
	declareNew(t, redistest.URLs(masters), guarded...)
	l := masters.client(t, guarded...).Latch("jobs", 10)
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	masters.mustBeWhole(t, "redlock:arrivals::jobs")
	do(t, masters[0], "SAVE")
	masters.arriveAtThree(t, l, "second")
	masters[0].Restart()
	masters.mustCountTwo(t, guarded)
}

// arriveAtThree has only the first three masters learn of an arrival.
func (ms realMasters) arriveAtThree(t *testing.T, l *redlock.Latch, id string) {
	t.Helper()
	ms[3:].doAll(t, "CONFIG", "SET", "maxmemory", 1)
	if err := l.Arrive(ctx, id); err != nil {
		t.Fatal(err)
	}
	ms[3:].doAll(t, "CONFIG", "SET", "maxmemory", 0)
}

// mustCountTwo has somebody count who does not reach the second and the third master,
// as soon as the first may answer, and then does.
func (ms realMasters) mustCountTwo(t *testing.T, opts []redlock.Option) {
	t.Helper()
	addrs, links := ms.behindProxies(t)
	l := dial(t, addrs, opts...).Latch("jobs", 10)
	links[1].Cut(faultproxy.Requests)
	links[2].Cut(faultproxy.Requests)
	n, err := l.Count(ctx)
	for err != nil && strings.Contains(err.Error(), "quarantined") {
		n, err = l.Count(ctx)
	}
	if err == nil && n < 2 {
		t.Errorf("%d have arrived, and two were confirmed", n)
	}
	links[1].Heal()
	links[2].Heal()
	eventually(t, "both are counted", func() bool { n, err := l.Count(ctx); return n == 2 && err == nil })
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// mustBeWhole waits until every master says that it knows who has arrived.
func (ms realMasters) mustBeWhole(t *testing.T, key string) {
	t.Helper()
	for _, s := range ms {
		eventually(t, "the arrivals are known", func() bool { return do(t, s, "EXISTS", key) == int64(1) })
	}
}

// A latch takes so many arrivals and no more: the next one is refused by name, one that has
// arrived is not.
func TestReal_L48_a_latch_that_is_full_refuses_arrivals(t *testing.T) {
	masters := startMasters(t, 3)
	l := masters.client(t).Latch("jobs", 1)
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	masters.mustBeWhole(t, "redlock:arrivals::jobs")
	masters.doAll(t, "SADD", manyIDs(wire.MaxArrivals-1)...)

	mustName(t, l.Arrive(ctx, "one more"), []string{`"jobs"`, "arrive", "5000 have arrived", "takes 5000"})
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Errorf("one that has arrived: %v", err)
	}
	if n, err := l.Count(ctx); n != wire.MaxArrivals || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
}

// Clients of an older version may have had far more arrive. Then the latch is open, cannot be
// counted, which is said by name, and no connection ends.
func TestReal_L48_a_latch_at_which_seventy_thousand_have_arrived_is_open(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	l := c.Latch("jobs", 2)
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	masters.mustBeWhole(t, "redlock:arrivals::jobs")
	masters.doAll(t, "SADD", manyIDs(70_000)...)

	if err := l.Wait(ctx); err != nil {
		t.Errorf("Wait: %v", err)
	}
	_, err := l.Count(ctx)
	mustName(t, err, []string{`"jobs"`, "count", "70001 have arrived", "takes 5000"})
	for _, n := range c.Nodes() {
		if n.Reconnects > 0 {
			t.Errorf("%s: connected again", n.Addr)
		}
	}
}

// manyIDs are the key of the latch and so many ids.
func manyIDs(n int) redis.Args {
	ids := redis.Args{"redlock:latch::jobs"}
	for i := range n {
		ids = ids.Add(fmt.Sprint("job ", i))
	}
	return ids
}

// Callers who wait for a latch look at the masters once for all callers of their client, and
// when enough may have arrived. They read nobody's name as long as the masters agree.
func TestReal_L48_waiters_for_a_large_latch_look_seldom(t *testing.T) {
	masters := startMasters(t, 3)
	const clients, callers, jobs = 4, 100, 1000
	arriving := masters.client(t).Latch("jobs", jobs)
	if err := arriving.Arrive(ctx, "0"); err != nil {
		t.Fatal(err)
	}
	masters.mustBeWhole(t, "redlock:arrivals::jobs")
	var all sync.WaitGroup
	for range clients {
		c := masters.client(t)
		for range callers {
			all.Go(func() {
				if err := c.Latch("jobs", jobs).Wait(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	eventually(t, "all clients listen", func() bool {
		heard := do(t, masters[0], "PUBSUB", "NUMSUB", "redlock:latch::jobs").([]any)
		return heard[1] == int64(clients)
	})
	masters.doAll(t, "CONFIG", "RESETSTAT")
	for i := 1; i < jobs; i++ {
		if err := arriving.Arrive(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	for _, s := range masters {
		looks, reads := calls(t, s, "scard")-(jobs-1), calls(t, s, "smembers")
		t.Logf("%d looks, %d reads", looks, reads)
		if looks > 100*clients || reads > 20*clients {
			t.Errorf("%s: %d looks and %d reads by %d clients", s.Addr(), looks, reads, clients)
		}
	}
}
