package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// onBoth runs a test on redis-servers and on miniredis: on one, which compiles every
// script anew for every client, and a client waits for no longer than 2 s.
func onBoth(t *testing.T, test func(t *testing.T, addrs []string)) {
	t.Run("redis", func(t *testing.T) { test(t, redistest.URLs(startMasters(t, 3))) })
	t.Run("miniredis", func(t *testing.T) {
		test(t, []string{miniredis.RunT(t).Addr()})
	})
}

// inspect asks until the answer is as it is to be: releases and votes that nobody
// waited for are still on their way.
func inspect(t *testing.T, c *redlock.Client, name string, ok func(redlock.Holder) bool) (h redlock.Holder) {
	t.Helper()
	eventually(t, "inspect "+name, func() bool {
		var err error
		if h, err = c.Inspect(ctx, name); err != nil {
			t.Fatal(err)
		}
		return ok(h)
	})
	return h
}

func TestInspect_tells_the_token_of_a_fenced_lock(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		lease := lock(t, c.Mutex("fenced", redlock.Fenced(), redlock.Metadata("nightly")))

		h := inspect(t, dial(t, addrs), "fenced", func(h redlock.Holder) bool { return h.Token != 0 })

		if h.Token != lease.Token() || h.Kind != "mutex" || h.Metadata != "nightly" || h.Waiting != 0 {
			t.Errorf("%+v; want the token %d of a mutex for which nobody waits", h, lease.Token())
		}
		unfenced := lock(t, c.Mutex("plain"))
		if h, err := c.Inspect(ctx, "plain"); err != nil || h.Token != 0 || h.Value != unfenced.Value() {
			t.Errorf("%+v, %v; want no token", h, err)
		}
	})
}

// Masters keep the counter of a name for a week.
func TestInspect_tells_no_token_of_a_holder_without_one(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		if err := lock(t, c.Mutex("orders", redlock.Fenced())).Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		plain := lock(t, c.Mutex("orders"))
		inspect(t, c, "orders", func(h redlock.Holder) bool { return h.Value == plain.Value() && h.Token == 0 })
		plain.Release()
		inspect(t, c, "orders", func(h redlock.Holder) bool { return !h.Held && h.Token == 0 })
		multi, err := c.Multi([]string{"orders", "stock"}, redlock.Fenced()).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		inspect(t, c, "orders", func(h redlock.Holder) bool { return h.Token == multi.Token() })
		multi.Release()
	})
}

// A master keeps the place of a waiter in its queue for a while after it was handed the
// lock.
func TestInspect_does_not_list_the_holder_as_a_waiter(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c, other := dial(t, addrs), dial(t, addrs)
		for _, options := range [][]redlock.MutexOption{nil, {redlock.Fenced()}, {redlock.Fair()}} {
			first := lock(t, c.Mutex("orders", options...))
			second := make(chan *redlock.Lease, 1)
			go func() {
				lease, _ := other.Mutex("orders", options...).Lock(ctx)
				second <- lease
			}()
			inspect(t, c, "orders", func(h redlock.Holder) bool { return h.Waiting == 1 })
			first.Release()
			holder := arrival(t, "the second", second)
			for range 20 { // while registrations last
				h, err := c.Inspect(ctx, "orders")
				if err != nil {
					t.Fatal(err)
				}
				if h.Waiting != 0 || len(h.Queue) != 0 {
					t.Fatalf("%d waiting, %+v: they have the lock", h.Waiting, h.Queue)
				}
				time.Sleep(5 * time.Millisecond)
			}
			holder.Release()
			inspect(t, c, "orders", func(h redlock.Holder) bool { return !h.Held })
		}
	})
}

func TestInspect_counts_those_who_wait(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		first := lock(t, c.Mutex("orders"))
		next := lockLater(t, dial(t, addrs).Mutex("orders"))

		inspect(t, c, "orders", func(h redlock.Holder) bool { return h.Waiting == 1 && h.Value == first.Value() })

		first.Release()
		lease := next()
		lease.Release()
		inspect(t, c, "orders", func(h redlock.Holder) bool { return h.Waiting == 0 && !h.Held })
	})
}

func TestInspect_lists_readers(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs, redlock.WithClientID("reader"))
		m := c.RWMutex("config", redlock.Metadata("reload"))
		one, two := mustRLock(t, m), mustRLock(t, m)

		h := inspect(t, c, "config", func(h redlock.Holder) bool { return len(h.Shares) == 2 })

		if h.Kind != "read-write" || !h.Held || h.Value != "" {
			t.Errorf("%+v; want a read-write lock that nobody has alone", h)
		}
		for _, s := range h.Shares {
			if s.Value != one.Value() && s.Value != two.Value() || s.Client != "reader" || s.Metadata != "reload" || s.Slots != nil {
				t.Errorf("share %+v", s)
			}
			if s.Remaining <= 0 || s.Remaining > 2*time.Second {
				t.Errorf("remaining %v of a TTL of 2s", s.Remaining)
			}
		}
		one.Release()
		h = inspect(t, c, "config", func(h redlock.Holder) bool { return len(h.Shares) == 1 })
		if h.Shares[0].Value != two.Value() {
			t.Errorf("%q reads; want %q", h.Shares[0].Value, two.Value())
		}
	})
}

func TestInspect_tells_a_read_write_lock_by_those_who_wait_for_its_writer(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		m := c.RWMutex("config")
		writer, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan *redlock.Lease, 1)
		go func() {
			lease, _ := m.RLock(ctx)
			read <- lease
		}()

		h := inspect(t, c, "config", func(h redlock.Holder) bool { return h.Kind == "read-write" && h.Waiting == 1 })

		if h.Value != writer.Value() || h.Waiting != 1 {
			t.Errorf("%+v; want the writer, and a reader that waits", h)
		}
		writer.Release()
		(<-read).Release()
	})
}

// A writer for whom nobody waits, who waited itself, and who is a reader now.
func TestInspect_tells_a_writer_from_a_mutex(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs, redlock.WithClientID("editor"))
		m := c.RWMutex("config", redlock.Metadata("edit w/o W/W"))
		mustBeWriter := func(writer *redlock.Lease) {
			t.Helper()
			h := inspect(t, c, "config", func(h redlock.Holder) bool { return h.Value == writer.Value() && h.Waiting == 0 })
			if h.Kind != "read-write" || h.Client != "editor" || h.Metadata != "edit w/o W/W" || len(h.Shares) > 0 {
				t.Errorf("%+v; want the writer", h)
			}
		}
		first, err := m.TryLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustBeWriter(first)
		other := dial(t, addrs, redlock.WithClientID("editor")).RWMutex("config", redlock.Metadata("edit w/o W/W"))
		next := make(chan *redlock.Lease, 1)
		go func() {
			lease, _ := other.Lock(ctx)
			next <- lease
		}()
		inspect(t, c, "config", func(h redlock.Holder) bool { return h.Waiting == 1 })
		first.Release()
		writer := arrival(t, "the next writer", next)
		mustBeWriter(writer)

		if err := other.Downgrade(ctx, writer); err != nil {
			t.Fatal(err)
		}
		inspect(t, c, "config", func(h redlock.Holder) bool { return h.Kind == "read-write" && h.Value == "" && len(h.Shares) == 1 })
		writer.Release()

		mutex := lock(t, c.Mutex("W", redlock.Metadata("W/W/W")))
		inspect(t, c, "W", func(h redlock.Holder) bool { return h.Value == mutex.Value() && h.Kind == "mutex" })
		mutex.Release()
	})
}

func mustRLock(t *testing.T, m *redlock.RWMutex) *redlock.Lease {
	t.Helper()
	lease, err := m.RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestInspect_tells_which_permits_are_held(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		s := c.Semaphore("gpu", 4)
		lease, err := s.Acquire(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}

		h := inspect(t, c, "gpu", func(h redlock.Holder) bool { return len(h.Shares) == 1 && h.Permits == 4 })

		if h.Kind != "semaphore" || h.Available != 2 || !h.Held {
			t.Errorf("%+v; want 2 of 4 permits free", h)
		}
		if s := h.Shares[0]; s.Value != lease.Value() || len(s.Slots) != 2 || s.Remaining <= 0 {
			t.Errorf("share %+v; want two slots of %q", s, lease.Value())
		}
		lease.Release()
		inspect(t, c, "gpu", func(h redlock.Holder) bool { return !h.Held && h.Available == 4 && h.Kind == "semaphore" })
	})
}

func TestInspect_does_not_count_what_a_minority_knows(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	for _, s := range masters[:2] {
		do(t, s, "ZADD", "redlock:readers:config", time.Now().Add(time.Minute).UnixMilli(), "c/nnnnnnnnnnnnnnnn/1")
		do(t, s, "HSET", "redlock:reading:config", "c/nnnnnnnnnnnnnnnn/1", "c/nnnnnnnnnnnnnnnn/1:0")
		do(t, s, "ZADD", "redlock:queue:config", 1, "c/nnnnnnnnnnnnnnnn/2")
	}

	h, err := c.Inspect(ctx, "config")

	if err != nil || h.Held || h.Kind != "" || h.Waiting != 0 || len(h.Shares) != 0 {
		t.Errorf("%+v, %v; want a free lock", h, err)
	}
	if len(h.Nodes[0].Shares) != 1 || len(h.Nodes[4].Shares) != 0 {
		t.Errorf("nodes %+v; want what each knows", h.Nodes)
	}
}

func TestInspect_says_for_how_long_a_majority_knows_a_reader(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	for i, s := range masters {
		do(t, s, "ZADD", "redlock:readers:config", time.Now().Add(time.Duration(i+1)*time.Minute).UnixMilli(), "c/nnnnnnnnnnnnnnnn/1")
		do(t, s, "HSET", "redlock:reading:config", "c/nnnnnnnnnnnnnnnn/1", "c/nnnnnnnnnnnnnnnn/1:0")
	}

	h, err := c.Inspect(ctx, "config")

	if err != nil || len(h.Shares) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	// After the third minute two of five are left.
	if left := h.Shares[0].Remaining; left > 3*time.Minute || left < 2*time.Minute {
		t.Errorf("remaining %v, want what is left of 3m", left)
	}
}

func TestForceUnlock_takes_readers_and_permits_away(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs)
		mustRLock(t, c.RWMutex("config", redlock.NoRenew()))
		if _, err := c.Semaphore("gpu", 2, redlock.NoRenew()).Acquire(ctx, 2); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"config", "gpu"} {
			found, err := c.ForceUnlock(ctx, name)
			if err != nil || len(found.Shares) != 1 {
				t.Errorf("%s: found %+v, %v; want one share", name, found, err)
			}
		}
		if _, err := c.RWMutex("config").TryLock(ctx); err != nil {
			t.Errorf("a writer after the reader was taken away: %v", err)
		}
		if _, err := c.Semaphore("gpu", 2).TryAcquire(ctx, 2); err != nil {
			t.Errorf("both permits after they were taken away: %v", err)
		}
	})
}

// The holder has a majority and a waiter the rest. The waiter is given the holder's
// part when that is deleted, and then holds the lock.
func TestReal_ForceUnlockLeavesTheLockToTheWaiterThatGetsIt(t *testing.T) {
	masters := startMasters(t, 5)
	long := redlock.WithTTL(time.Minute)
	crashed, waiting, c := masters.client(t, long), masters.client(t, long), masters.client(t, long)
	held := lock(t, crashed.Mutex("name", redlock.NoRenew()))
	eventually(t, "all masters store it", func() bool { return len(masters.without(t, held.Value())) == 0 })
	for _, s := range masters[3:] {
		do(t, s, "DEL", "name")
		do(t, s, "SET", "name", "of-another-library") // and is there for ever
	}
	do(t, masters[3], "DEL", "name")
	next := lockLater(t, waiting.Mutex("name"))
	eventually(t, "the waiter has been given what was free", func() bool { return do(t, masters[3], "GET", "name") != nil })

	if _, err := c.ForceUnlock(ctx, "name"); err != nil {
		t.Fatal(err)
	}

	lease := next()
	if forgot := masters.without(t, lease.Value()); len(forgot) > 2 {
		t.Errorf("masters %d do not store a lease that is valid: %v", forgot, lease.Valid())
	}
	unlocks(t, lease)
}

func TestInspect_tells_the_place_of_those_who_wait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addrs []string) {
		c := dial(t, addrs, redlock.WithTTL(time.Minute))
		gpu := c.Semaphore("gpu", 4)
		fair := []redlock.MutexOption{redlock.Fair(), redlock.Fenced()}
		for _, what := range []struct {
			name   string
			hold   take
			wait   func(...redlock.LockOption) take
			wanted redlock.Waiter
		}{
			{"fair", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Mutex("fair", fair...).Lock(ctx)
			},
				func(opts ...redlock.LockOption) take {
					return func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
						return c.Mutex("fair", redlock.Options(opts...), redlock.Fair(), redlock.Fenced()).Lock(ctx)
					}
				}, redlock.Waiter{}},
			{"config", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.RWMutex("config").Lock(ctx)
			},
				func(opts ...redlock.LockOption) take {
					return func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
						return c.RWMutex("config", redlock.Options(opts...)).RLock(ctx)
					}
				}, redlock.Waiter{Shared: true}},
			{"gpu", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) { return gpu.Acquire(ctx, 4) },
				func(opts ...redlock.LockOption) take {
					return func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
						return c.Semaphore("gpu", 4, redlock.Options(opts...)).Acquire(ctx, 3)
					}
				}, redlock.Waiter{Permits: 3}},
		} {
			held := aKind{what.name, what.hold, nil}.holds(t, c)
			within, cancel := context.WithTimeout(ctx, patience)
			var all sync.WaitGroup
			var h redlock.Holder
			for i := range 3 {
				waits := dial(t, addrs, redlock.WithTTL(time.Minute), redlock.WithClientID(fmt.Sprint("client-", i)))
				all.Go(func() {
					if lease, err := what.wait(redlock.Metadata("nightly"))(within, waits); err == nil {
						lease.Release()
					}
				})
				h = inspect(t, c, what.name, func(h redlock.Holder) bool { return len(h.Queue) == i+1 && h.Waiting == i+1 })
			}
			// Who comes within the time for which a new client knows the masters' clocks
			// may be before another: here the order of their tickets counts.
			came := map[string]bool{}
			for i, q := range h.Queue {
				came[q.Client] = true
				if q.Metadata != "nightly" || q.Shared != what.wanted.Shared || q.Permits != what.wanted.Permits {
					t.Errorf("%s: %+v", what.name, q)
				}
				if i > 0 && q.Ticket < h.Queue[i-1].Ticket || !slices.Contains(q.Places, i+1) {
					t.Errorf("%s: %+v behind ticket %d", what.name, q, h.Queue[i-1].Ticket)
				}
			}
			if !came["client-0"] || !came["client-1"] || !came["client-2"] {
				t.Errorf("%s: %+v, want all three", what.name, h.Queue)
			}
			held.Release()
			all.Wait()
			cancel()
			inspect(t, c, what.name, func(h redlock.Holder) bool { return len(h.Queue) == 0 && h.Waiting == 0 })
		}
	})
}

// A majority must have queued a waiter, and the highest of its tickets counts. Whose
// time is over, or who is no waiter, is not shown.
func TestInspect_orders_waiters_as_a_majority_does(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	queue := func(i int, waiter string, ticket int64, ask int, until time.Duration) {
		do(t, masters[i], "ZADD", "redlock:queue:orders", ticket, waiter)
		do(t, masters[i], "HSET", "redlock:wait:orders", waiter, fmt.Sprintf("%d - %s:%d", time.Now().Add(until).UnixMilli(), waiter, ask))
	}
	for i := range masters {
		queue(i, "late/n/1", 30, i, time.Hour)
		queue(i, "gone/nnnnnnnnnnnnnnnn/1", 10, 0, -time.Second)
		if i < 3 {
			queue(i, "first/n/1", 20, 0, time.Hour)
			do(t, masters[i], "ZADD", "redlock:queue:orders", 1, "nobody")
			do(t, masters[i], "HSET", "redlock:wait:orders", "nobody", "9999999999999999 - what")
		} else {
			queue(i, "minority/n/1", 5, 0, time.Hour)
		}
	}
	queue(4, "late/n/1", 15, 9, time.Hour) // it has not settled there

	h, err := c.Inspect(ctx, "orders")

	if err != nil || len(h.Queue) != 2 {
		t.Fatalf("%+v, %v; want two waiters", h.Queue, err)
	}
	first, late := h.Queue[0], h.Queue[1]
	if first.Client != "first" || !slices.Equal(first.Places, []int{2, 2, 2, 0, 0}) {
		t.Errorf("first: %+v", first)
	}
	if late.Value != "late/n/1:9" || late.Ticket != 30 || !slices.Equal(late.Places, []int{3, 3, 3, 2, 2}) {
		t.Errorf("late: %+v", late)
	}
}

// Tens of thousands read, or thousands of holders have as much to say of themselves as they
// may: Inspect reads all of it in pages, and no connection ends.
func TestReal_L49_Inspect_reads_what_is_too_much_for_one_reply(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	c := masters.client(t)
	end := time.Now().Add(time.Hour).UnixMilli()
	readers, holders := 22_000, wire.MaxPermits
	metadata := strings.Repeat("x", 1024)
	for from := 0; from < readers; from += 2000 {
		ends, values := redis.Args{"redlock:readers:config"}, redis.Args{"redlock:reading:config"}
		for i := from; i < from+2000; i++ {
			who := fmt.Sprintf("c/nnnnnnnnnnnnnnnn/%d", i)
			ends, values = ends.Add(end+int64(i/1500), who), values.Add(who, who+":0")
		}
		masters.doAll(t, "ZADD", ends...)
		masters.doAll(t, "HSET", values...)
	}
	for from := 0; from < holders; from += 512 {
		ends, owners, held := redis.Args{"redlock:slots:gpu"}, redis.Args{"redlock:owners:gpu"}, redis.Args{"redlock:held:gpu"}
		for i := from; i < from+512; i++ {
			who := fmt.Sprintf("c/nnnnnnnnnnnnnnnn/%d", i)
			ends, owners, held = ends.Add(end, i), owners.Add(i, who), held.Add(who, fmt.Sprintf("%d %s:0 %s", i, who, metadata))
		}
		masters.doAll(t, "ZADD", ends...)
		masters.doAll(t, "HSET", owners...)
		masters.doAll(t, "HSET", held...)
	}
	masters.doAll(t, "SET", "redlock:permits:gpu", strconv.Itoa(holders))

	for name, want := range map[string]int{"config": readers, "gpu": holders} {
		h, err := c.Inspect(ctx, name)
		if err != nil || len(h.Shares) != want {
			t.Errorf("%s: %d of %d, %v", name, len(h.Shares), want, err)
		}
	}
	for _, n := range c.Nodes() {
		if n.Reconnects > 0 {
			t.Errorf("%s: connected again", n.Addr)
		}
	}
}
