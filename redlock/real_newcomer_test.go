package redlock_test

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages what clients do wrong that are new to the masters, or know
// too little of each other: S5b, S14, S33 and S34 of docs/failures.md.

// cutHolder is client 1 of three masters. It holds A and B, is cut off from C, and
// from B too when that forgets.
type cutHolder struct {
	masters realMasters
	lease   *redlock.Lease
	opts    []redlock.Option // of every client
}

// newCutHolder has B forget, after given was reached.
func newCutHolder(t *testing.T, ms realMasters, given, forget func(), opts ...redlock.Option) *cutHolder {
	t.Helper()
	declareNew(t, redistest.URLs(ms))
	addrs, proxies := ms.behindProxies(t)
	proxies[2].Refuse()
	mutex := dial(t, addrs, opts...).Mutex("orders", redlock.NoRenew())
	given()
	h := &cutHolder{masters: ms, lease: lock(t, mutex), opts: opts}
	ms[:2].mustHold(t, h.lease)
	proxies[1].Refuse()
	proxies[1].Reset()
	forget()
	return h
}

// mustKeepOut has one new client after the other try to take B and C for as long
// as the lease of client 1 is valid. It returns how many tried; none if the
// machine was so busy that the lease had ended before.
func (h *cutHolder) mustKeepOut(t *testing.T) (tries int) {
	t.Helper()
	for h.lease.Valid() {
		c := dial(t, redistest.URLs(h.masters), h.opts...)
		lease, err := c.Mutex("orders").TryLock(ctx)
		if h.lease.Valid() {
			tries++
			if err == nil {
				t.Fatalf("two holders: %v and %v", h.lease, lease)
			}
			mustBe(t, err, guard.ErrQuarantined)
		}
		c.Close()
	}
	return tries
}

// S33: the uptime of a server is the difference of two instants in whole seconds.
// B starts anew in the second half of a second, and seems to be half a second
// older than it is when the first client comes.
func TestReal_S33_new_clients_do_not_go_by_the_uptime(t *testing.T) {
	t.Parallel()
	const ttl = 3 * second
	var h *cutHolder
	for tries := 0; tries == 0; tries = h.mustKeepOut(t) {
		ms := startMasters(t, 3)
		lateInASecond := func() {
			eventually(t, "it is late in a second", func() bool {
				return time.Now().Nanosecond()/int(time.Millisecond)/100 == 5
			})
		}
		h = newCutHolder(t, ms, lateInASecond, ms[1].RestartEmpty, redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl))
		eventually(t, "B says that it is as old as the guard", func() bool { return uptime(t, ms[1]) >= ttl })
	}

	lock(t, dial(t, redistest.URLs(h.masters), h.opts...).Mutex("orders"))
}

// S34: B has been up for longer than the guard when it is flushed, and nobody
// looks. New clients do not take it for a master that was never used, and do not
// tell each other so.
func TestReal_S34_new_clients_do_not_believe_a_master_that_was_flushed(t *testing.T) {
	t.Parallel()
	const ttl = 2 * second
	var h *cutHolder
	for tries := 0; tries == 0; tries = h.mustKeepOut(t) {
		ms := startMasters(t, 3)
		upForLonger := func() {
			eventually(t, "the masters are up for longer than the guard", func() bool { return uptime(t, ms[1]) > ttl })
		}
		flush := func() { do(t, ms[1], "FLUSHALL") }
		h = newCutHolder(t, ms, upForLonger, flush, redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl))
	}

	lock(t, dial(t, redistest.URLs(h.masters), h.opts...).Mutex("orders"))
}

func uptime(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	info, err := redis.String(s.Do("INFO", "server"))
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.Atoi(regexp.MustCompile(`uptime_in_seconds:(\d+)`).FindStringSubmatch(info)[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds) * second
}

// S24c: client 2 is connected and asks as soon as B was flushed, before any
// heartbeat can have seen it. The marker that is read with the vote gives it
// away.
func TestReal_S24c_flush_that_no_heartbeat_has_seen(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	ms.mustNotVoteAfter(t, func() { do(t, ms[1], "FLUSHALL") })
}

// S2: client 2 is connected and asks as soon as B's clock was set forward, before any
// heartbeat can have seen it. Its key has expired there. The clock that is read with
// the vote gives it away.
func TestReal_S2_step_that_no_heartbeat_has_seen(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.Faketime())
	ms.mustNotVoteAfter(t, func() { ms[1].StepClock(90 * time.Second) })
}

// mustNotVoteAfter has B forget the lock of client 1, and client 2, which is connected,
// ask at once.
func (ms realMasters) mustNotVoteAfter(t *testing.T, forget func()) {
	t.Helper()
	opts := []redlock.Option{redlock.WithTTL(time.Minute), redlock.WithRestartGuard(time.Minute)}
	var second *redlock.Mutex
	connected := func() {
		c := ms.client(t, opts...)
		second = c.Mutex("orders")
		eventually(t, "client 2 reaches all masters", func() bool {
			lease, err := c.Mutex("something else").TryLock(ctx)
			return err == nil && lease.Unlock(ctx) == nil
		})
	}
	h := newCutHolder(t, ms, connected, forget, opts...)

	lease, err := second.TryLock(ctx)

	if err == nil {
		t.Fatalf("two holders: %v and %v", h.lease, lease)
	}
	mustBe(t, err, guard.ErrQuarantined)
}

// S5b: client 1 has a long TTL and cannot renew; three masters of five restart
// empty. Others have a short guard: one that was there before, and those that
// come after, who know of the longer one only from the two masters that remember.
func TestReal_S5b_the_longest_guard_counts_for_everybody(t *testing.T) {
	t.Parallel()
	const long, short = 5 * second, 1 * second
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	declareNew(t, urls)
	addrs, proxies := ms.behindProxies(t)
	careful := dial(t, addrs, redlock.WithTTL(long), redlock.WithRestartGuard(long))
	opts := []redlock.Option{redlock.WithTTL(short), redlock.WithRestartGuard(short)}
	known := dial(t, urls, opts...)
	held := lock(t, careful.Mutex("orders", redlock.NoRenew()))
	ms.mustHold(t, held)
	for _, p := range proxies {
		p.Refuse()
		p.Reset()
	}
	for _, s := range ms[:3] {
		s.RestartEmpty()
	}
	restarted := time.Now()

	for held.Valid() {
		newcomer := dial(t, urls, opts...)
		for who, c := range map[string]*redlock.Client{"was there before": known, "is new": newcomer} {
			lease, err := c.Mutex("orders").TryLock(ctx)
			if err == nil && held.Valid() {
				t.Fatalf("two holders %v after the restart: the second %s: %v and %v", time.Since(restarted), who, held, lease)
			}
		}
		newcomer.Close()
	}

	lock(t, known.Mutex("orders"))
}

// S5b: a holder whose master has lost its memory does not wait for its next
// renewal, which is a quarter of an hour away.
func TestReal_S5b_a_holder_renews_at_once_when_a_master_has_forgotten(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	opts := []redlock.Option{redlock.WithTTL(time.Hour), redlock.WithRestartGuard(time.Hour)}
	declareNew(t, redistest.URLs(ms))
	lease := lock(t, ms.client(t, opts...).Mutex("orders"))
	ms.mustHold(t, lease)

	do(t, ms[1], "FLUSHALL")

	ms.mustHold(t, lease)
}

// S14: two clients with three masters of the same five, or under another name,
// do not get so far as to lock.
func TestReal_S14_client_of_another_group_is_refused(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	careful := redlock.WithRestartGuard(time.Minute)
	declareNew(t, urls, redlock.WithGroup("orders"))
	held := lock(t, dial(t, urls, careful, redlock.WithGroup("orders")).Mutex("orders", redlock.TTL(time.Minute)))
	ms.mustHold(t, held)

	for what, client := range map[string]func() (*redlock.Client, error){
		"three of the masters": func() (*redlock.Client, error) { return tryDial(urls[2:], careful) },
		"another name":         func() (*redlock.Client, error) { return tryDial(urls, careful, redlock.WithGroup("billing")) },
	} {
		c, err := client()
		if err == nil {
			c.Close()
			t.Errorf("%s: was let in", what)
			continue
		}
		mustBe(t, err, guard.ErrOtherGroup)
	}

	log := &diary{}
	addrs, _ := ms.behindProxies(t)
	dial(t, addrs, careful, redlock.WithLogger(slog.New(log)))
	if !log.said("WARN", "different list of addresses", addrs[0]) {
		t.Errorf("nobody is warned of the same masters under other addresses: %q", log.all())
	}
}

// S14: nobody has marked these masters yet. Whoever comes first says how many
// they are, and the other is refused, whatever the order in which both connect.
func TestReal_S14_masters_that_nobody_has_marked(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	opts := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(second)}
	limited, cancel := context.WithTimeout(ctx, 3*second)
	defer cancel()
	got := make(chan bool, 2)
	for _, group := range [][]string{urls[:3], urls} {
		go func() {
			c, err := redlock.Dial(ctx, group, append(opts, redlock.WithLogger(slog.New(slog.DiscardHandler)))...)
			if err != nil {
				got <- false
				return
			}
			defer c.Close()
			_, err = c.Mutex("orders", redlock.NoRenew()).Lock(limited)
			got <- err == nil
			<-limited.Done()
		}()
	}

	if first, second := <-got, <-got; first && second {
		t.Error("clients of three and of five masters both got the lock")
	}
}

// S14: clients of another list of as many masters would not notice, unless both
// lists have names.
func TestReal_S14_regrouping_must_shut_out_the_clients_of_the_old_list(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 4)
	urls := redistest.URLs(ms)
	opts := []redlock.Option{redlock.WithTTL(second), redlock.WithRestartGuard(second)}
	declareNew(t, urls[:3], redlock.WithGroup("old"))
	lock(t, dial(t, urls[:3], append(opts, redlock.WithGroup("old"))...).Mutex("orders"))

	for _, name := range []string{"", "old"} {
		_, err := redlock.Regroup(ctx, urls[1:], append(opts, redlock.WithGroup(name))...)
		if err == nil || !strings.Contains(err.Error(), "would go on with it") {
			t.Errorf("group %q: %v", name, err)
		}
	}
	for range 2 { // and once more, as after a failure
		if _, err := redlock.Regroup(ctx, urls[1:], append(opts, redlock.WithGroup("new"))...); err != nil {
			t.Error(err)
		}
	}
	_, err := tryDial(urls[:3], append(opts, redlock.WithGroup("old"))...)
	mustBe(t, err, guard.ErrOtherGroup)
}

// S14: three masters become five. A client of the three holds two of them, so that
// the other three of the five are free. It loses its lock in time, and clients of
// the five wait until it is over.
func TestReal_S14_from_three_masters_to_five(t *testing.T) {
	t.Parallel()
	const ttl = 2 * second
	ms := startMasters(t, 5)
	urls := redistest.URLs(ms)
	opts := []redlock.Option{redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl)}
	declareNew(t, urls[:3])
	addrs, proxies := ms[:3].behindProxies(t)
	proxies[2].Refuse()
	before := dial(t, addrs, opts...)
	old := lock(t, before.Mutex("orders"))
	ms[:2].mustHold(t, old)

	began := time.Now()
	if _, err := redlock.Regroup(ctx, urls, opts...); err != nil {
		t.Fatal(err)
	}
	lease := lock(t, dial(t, urls, opts...).Mutex("orders"))

	if old.Valid() || !lease.Valid() {
		t.Errorf("two holders, or none: %v and %v", old, lease)
	}
	if passed := time.Since(began); passed < ttl {
		t.Errorf("the five voted after %v", passed)
	}
	mustEnd(t, old.Context())
	_, err := before.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)
	_, err = tryDial(urls[:3], opts...)
	mustBe(t, err, guard.ErrOtherGroup)
}

// Readers and permits are locks that are no strings. What stays for a week after
// its last use is no lock.
func TestReal_Init_knows_locks_of_every_kind(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	addrs := redistest.URLs(masters)
	for _, k := range kinds() {
		c := masters.client(t)
		lease := k.holds(t, c)
		_, err := redlock.Init(ctx, addrs)
		mustBe(t, err, operate.ErrNotNew)
		unlocks(t, lease)
		masters.mustKeepNothing(t)
		c.Close()
	}
	c := masters.client(t)
	if err := c.Latch("jobs", 2).Arrive(ctx, "a"); err != nil { // nor is a latch a lock
		t.Fatal(err)
	}
	c.Close()
	declareNew(t, addrs)
}

// A master without a marker may be new, or have lost its memory. Beside masters that
// are in use it has lost it: S14d.
func TestReal_S14d_Init_refuses_a_master_without_memory_beside_others_in_use(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		declared time.Duration // ago
		held     []int         // the masters where a client that they cannot reach holds a lock
		flushed  []int
	}{
		"a lock on the others":   {time.Second, []int{0, 1}, []int{1}},
		"declared new long ago":  {time.Hour, []int{0, 1}, []int{0, 1}},
		"declared in the future": {-time.Hour, []int{0, 1}, []int{0, 1}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 3)
			addrs := redistest.URLs(masters)
			declareNew(t, addrs)
			for _, s := range masters {
				m, err := guard.ParseMarker(string(do(t, s, "GET", "redlock:marker").([]byte)))
				if err != nil {
					t.Fatal(err)
				}
				aged := guard.NewMaster(m.RunID, time.Now().Add(-c.declared), m.Hold, m.Group)
				do(t, s, "SET", "redlock:marker", aged.String())
			}
			for _, i := range c.held {
				do(t, masters[i], "SET", "orders", "far/away/1:0", "PX", 60_000)
			}
			for _, i := range c.flushed {
				do(t, masters[i], "FLUSHALL")
			}

			_, err := redlock.Init(ctx, addrs)

			mustBe(t, err, operate.ErrNotNew)
			for _, i := range c.flushed {
				if marker := do(t, masters[i], "GET", "redlock:marker"); marker != nil {
					t.Errorf("marked as %s", marker)
				}
			}
		})
	}
}

// What failed halfway can be done again.
func TestReal_Init_goes_on_where_it_failed(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	addrs := redistest.URLs(masters)
	declareNew(t, addrs, redlock.WithKeyPrefix("app:"))
	do(t, masters[2], "DEL", "app:redlock:marker")

	declareNew(t, addrs, redlock.WithKeyPrefix("app:"))

	declareNew(t, addrs, redlock.WithKeyPrefix("app:")) // nothing is left to do
}
