package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/redlock"
)

// regroup makes the masters one group.
func regroup(t testing.TB, addrs []string, opts ...redlock.Option) {
	t.Helper()
	if _, err := redlock.Regroup(ctx, addrs, opts...); err != nil {
		t.Fatal(err)
	}
}

// marker returns the marker of a master.
func marker(t testing.TB, s *redistest.Server) string {
	t.Helper()
	m, err := redis.String(s.Do("GET", "redlock:marker"))
	if err != nil && err != redis.ErrNil {
		t.Fatal(err)
	}
	return m
}

// S51: two of three masters know what was confirmed. They become five, and a client of
// the five reaches the other three.
func TestReal_S51_what_was_confirmed_before_the_masters_became_five_is_known_afterwards(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "app:"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5)
			urls := redistest.URLs(ms)
			opts := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(second), redlock.WithKeyPrefix(prefix)}
			declareNew(t, urls[:3], opts...)
			addrs, proxies := ms.behindProxies(t)
			proxies[2].Refuse()
			before := dial(t, addrs[:3], opts...)
			for _, id := range []string{"a", "b"} {
				noError(t, before.Latch("done", 3).Arrive(ctx, id))
			}
			noError(t, before.Latch("done", 3).Generation("2").Arrive(ctx, "c"))
			noError(t, before.Semaphore("jobs", 3).Resize(ctx, 2))
			unlocks(t, lock(t, before.Mutex("orders", redlock.Fenced())))
			ahead := time.Now().Add(time.Hour).UnixMicro() // by the clock of a client
			ms[:2].doAll(t, "SET", prefix+"redlock:token:orders", ahead, "PX", 600_000)
			before.Close()

			regroup(t, urls, opts...)
			proxies[2].Heal()
			proxies[0].Refuse()
			proxies[1].Refuse()
			after := dial(t, addrs, opts...)

			lease := lock(t, after.Mutex("orders", redlock.Fenced()))
			if lease.Token() <= uint64(ahead) {
				t.Errorf("the token is %d, and was %d before", lease.Token(), ahead)
			}
			for latch, want := range map[*redlock.Latch]int{
				after.Latch("done", 3): 2, after.Latch("done", 3).Generation("2"): 1,
			} {
				if n, err := latch.Count(ctx); n != want || err != nil {
					t.Errorf("%d have arrived, %v; want %d", n, err, want)
				}
			}
			if _, err := after.Semaphore("jobs", 3).TryAcquire(ctx, 1); err == nil {
				t.Error("the semaphore has as many permits as before the Resize")
			}
			permit, err := after.Semaphore("jobs", 2).TryAcquire(ctx, 1)
			noError(t, err)
			unlocks(t, permit)
		})
	}
}

// S51: more arrivals, counters and semaphores than fit into one question.
func TestReal_S51_thousands_are_taken_over(t *testing.T) {
	t.Parallel()
	const many = 2500
	ms := startMasters(t, 3)
	for i := range many {
		do(t, ms[0], "SADD", "redlock:latch::done", fmt.Sprint("job-", i))
		do(t, ms[0], "SET", fmt.Sprint("redlock:token:orders-", i), i+1, "PX", 600_000)
	}
	for i := range many / 10 {
		do(t, ms[0], "SET", fmt.Sprint("redlock:permits:jobs-", i), fmt.Sprint(i+1, " ", i+7), "PX", 600_000)
	}
	do(t, ms[2], "SET", "redlock:permits:jobs-1", "9 1", "PX", 600_000) // by an earlier Resize

	regroup(t, redistest.URLs(ms), redlock.WithTTL(second))

	for _, s := range ms {
		if n := do(t, s, "SCARD", "redlock:latch::done"); n != int64(many) {
			t.Errorf("%s knows %v arrivals", s.Addr(), n)
		}
		for _, i := range []int{0, 1, many/10 - 1} {
			mustStore(t, s, fmt.Sprint("redlock:permits:jobs-", i), fmt.Sprint(i+1, " ", i+7))
			mustStore(t, s, fmt.Sprint("redlock:token:orders-", 10*i), fmt.Sprint(10*i+1))
		}
	}
}

func mustStore(t testing.TB, s *redistest.Server, key, want string) {
	t.Helper()
	if got, err := redis.String(s.Do("GET", key)); got != want {
		t.Errorf("%s at %s is %q, %v; want %q", key, s.Addr(), got, err, want)
	}
}

// S51: what cannot be read shuts nobody out.
func TestReal_S51_what_cannot_be_taken_over_is_found_before_anybody_is_shut_out(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	declareNew(t, urls[:3])
	do(t, ms[1], "SET", "redlock:token:orders", "many")
	before := marker(t, ms[0])

	_, err := redlock.Regroup(ctx, urls, redlock.WithTTL(second))

	if err == nil || !strings.Contains(err.Error(), "redlock:token:orders") {
		t.Errorf("Regroup: %v", err)
	}
	if now := marker(t, ms[0]); now != before {
		t.Errorf("marked as %q, was %q", now, before)
	}
}

// S61: one master becomes three, and an operator whose guard is short tells them. The two new
// masters are a quorum, and know of no longer guard by themselves.
func TestReal_S61_new_masters_wait_for_the_longest_guard_that_any_master_knows(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	long := []redlock.Option{redlock.WithTTL(4 * second), redlock.WithRestartGuard(4 * second)}
	declareNew(t, urls[:1], long...)
	first := lock(t, dial(t, urls[:1], long...).Mutex("orders"))
	addrs, proxies := ms.behindProxies(t)

	told, err := redlock.Regroup(ctx, urls, redlock.WithTTL(second))

	noError(t, err)
	for _, line := range told {
		if !strings.Contains(line, "may vote in 4s") {
			t.Errorf("%s; want 4s", line)
		}
	}
	proxies[0].Refuse()
	next := dial(t, addrs, redlock.WithTTL(second), redlock.WithRestartGuard(second))
	lock(t, next.Mutex("orders"))
	if first.Valid() {
		t.Error("both leases are valid")
	}
}

// S51b: three, five, three, five; and one of the masters was not told.
func TestReal_S51b_masters_can_be_regrouped_again(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	opts := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(time.Minute)}
	declareNew(t, urls[:3])
	for _, s := range ms[:3] {
		do(t, s, "SET", "redlock:token:orders", 7)
	}
	three := marker(t, ms[2])
	regroup(t, urls, opts...)
	do(t, ms[2], "SET", "redlock:marker", three)

	regroup(t, urls, opts...) // goes on

	for range 2 {
		regroup(t, urls[:3], opts...)
		do(t, ms[0], "INCR", "redlock:token:orders")
		do(t, ms[1], "INCR", "redlock:token:orders")
		ago(t, ms...) // or it would go on with the Regroup that failed
		regroup(t, urls, opts...)
	}
	for _, s := range ms {
		mustStore(t, s, "redlock:token:orders", "9")
	}
}

// ago has the markers of servers say that they were written an hour earlier.
func ago(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		m, err := guard.ParseMarker(marker(t, s))
		noError(t, err)
		m.Since = m.Since.Add(-time.Hour)
		do(t, s, "SET", "redlock:marker", m.String())
	}
}

// S51b: a group whose other masters are not there goes on, whatever was regrouped long ago.
func TestReal_S51b_a_regroup_of_long_ago_says_nothing_of_todays_groups(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	opts := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(time.Minute)}
	regroup(t, urls, opts...)
	ago(t, ms[1:]...)
	others := startMasters(t, 2)
	do(t, ms[0], "DEL", "redlock:marker")
	regroup(t, append(redistest.URLs(others), urls[0]), opts...)

	_, err := redlock.Regroup(ctx, urls, opts...)

	if err == nil || !strings.Contains(err.Error(), "a quorum of it must be among them") {
		t.Errorf("Regroup: %v", err)
	}
}

// S14b: one master of each of two groups of three is a quorum of neither. Their names tell
// them apart.
func TestReal_S14b_masters_of_two_groups_are_no_quorum_of_either(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 7)
	urls := redistest.URLs(ms)
	regroup(t, urls[:3], redlock.WithTTL(second), redlock.WithGroup("red"))
	regroup(t, urls[3:6], redlock.WithTTL(second), redlock.WithGroup("blue"))

	_, err := redlock.Regroup(ctx, []string{urls[0], urls[1], urls[3], urls[6]}, redlock.WithTTL(second))

	if err == nil || !strings.Contains(err.Error(), "1 of these masters belong to a group of 3") {
		t.Errorf("Regroup: %v", err)
	}
}

// A client that was refused by new masters has marked them, and says: see redlock init.
func TestReal_Init_works_after_an_attempt_on_new_masters(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	guarded := []redlock.Option{redlock.WithTTL(time.Minute), redlock.WithRestartGuard(time.Minute)}
	attempt := dial(t, urls, guarded...)
	_, err := attempt.Mutex("orders").TryLock(ctx)
	mustBe(t, err, guard.ErrQuarantined)
	noError(t, attempt.Close()) // or it would take the new marker for that of a loss
	if marker(t, ms[0]) == "" {
		t.Fatal("the client has marked nothing")
	}

	declareNew(t, urls)

	unlocks(t, lock(t, dial(t, urls, guarded...).Mutex("orders")))
}

// Waiters ask also masters that must not vote yet, again and again. Each ask queues its waiter
// there, until the waiter takes it back.
func TestReal_Init_works_beside_waiters_of_every_kind(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	waiting, end := context.WithCancel(ctx)
	defer end()
	for _, k := range kinds() {
		c := dial(t, urls, redlock.WithTTL(time.Hour), redlock.WithRestartGuard(time.Hour), redlock.WithRetryInterval(time.Millisecond))
		go k.lock(waiting, c)
	}
	eventually(t, "a waiter is queued", func() bool {
		return slices.ContainsFunc(ms.locksLeft(t), func(key string) bool { return strings.Contains(key, "queue:") })
	})

	declareNew(t, urls)
}

// The markers are those of a client that knew the masters before they forgot.
func TestReal_S14d_Init_refuses_masters_that_a_client_knew_before_they_forgot(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	declareNew(t, urls)
	c := dial(t, urls, redlock.WithTTL(time.Minute), redlock.WithRestartGuard(time.Minute))
	unlocks(t, lock(t, c.Mutex("orders")))
	ms.doAll(t, "FLUSHALL")
	eventually(t, "the client has marked the masters", func() bool {
		return marker(t, ms[0]) != "" && marker(t, ms[1]) != "" && marker(t, ms[2]) != ""
	})

	_, err := redlock.Init(ctx, urls)

	mustBe(t, err, operate.ErrNotNew)
}

func TestReal_Init_several_at_once(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	for range 10 {
		over := make(chan error, 3)
		for range cap(over) {
			go func() {
				_, err := redlock.Init(ctx, urls)
				over <- err
			}()
		}
		for range cap(over) {
			if err := arrival(t, "the end of Init", over); err != nil {
				t.Error(err)
			}
		}
		ms.doAll(t, "FLUSHALL")
	}
}

// Clients with a short guard have used the masters. For those with a longer one they may
// not vote yet.
func TestReal_Init_says_nil_when_clients_with_these_options_may_lock(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	urls := redistest.URLs(ms)
	short := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(second)}
	unlocks(t, lock(t, dial(t, urls, short...).Mutex("orders")))

	_, err := redlock.Init(ctx, urls, redlock.WithRestartGuard(time.Hour))

	mustBe(t, err, operate.ErrNotNew)
	declareNew(t, urls, short...)
	_, err = dial(t, urls, redlock.WithRestartGuard(time.Hour)).Mutex("orders").TryLock(ctx)
	if !errors.Is(err, guard.ErrQuarantined) {
		t.Errorf("a client with a long guard: %v", err)
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
