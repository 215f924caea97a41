package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_semaphore_never_more_than_its_permits(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	const permits = 3
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		s := masters.client(t).Semaphore("sem", permits)
		for n := 1; n <= 3; n++ {
			all.Go(func() {
				for range 15 {
					lease, err := s.Acquire(ctx, n)
					if err != nil {
						t.Error(err)
						return
					}
					if now := inside.Add(int32(n)); now > permits {
						t.Errorf("%d permits of %d", now, permits)
					} else if now > most.Load() {
						most.Store(now)
					}
					time.Sleep(time.Millisecond)
					inside.Add(int32(-n))
					if err := lease.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if most.Load() != permits {
		t.Errorf("at most %d at once", most.Load())
	}
	s := masters.client(t).Semaphore("sem", permits)
	eventually(t, "all are free", func() bool { n, err := s.Available(ctx); return err == nil && n == permits })
	if _, err := masters.client(t).Semaphore("sem", 4).TryAcquire(ctx, 1); !errors.Is(err, redlock.ErrPermits) {
		t.Errorf("%v, want another number of permits", err)
	}
}

// A waiter that was told that it is its turn, and hangs, keeps its permits from
// those behind it, and no more than these.
func TestReal_semaphore_waiter_that_hangs_keeps_only_its_permits(t *testing.T) {
	masters := startMasters(t, 1)
	s := masters[0]
	c := masters.client(t, redlock.WithTTL(time.Minute))
	queueHung(t, s, "redlock:permitqueue:sem", "redlock:permitwait:sem", "w1")
	sem := c.Semaphore("sem", 3)

	for range 2 {
		if _, err := sem.Acquire(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	go sem.Acquire(ctx, 1)

	eventually(t, "the third is queued", func() bool { return do(t, s, "ZCARD", "redlock:permitqueue:sem") == int64(2) })
	mustSettle(t, s)
}

// Who wants many is not passed by those who want one.
func TestReal_semaphore_waiter_for_all_permits_gets_them(t *testing.T) {
	masters := startMasters(t, 5)
	sem := masters.client(t).Semaphore("sem", 3)
	var first []*redlock.Lease
	for range 3 {
		lease, err := sem.Acquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, lease)
	}
	got := make(chan *redlock.Lease, 1)
	go func() {
		lease, err := masters.client(t).Semaphore("sem", 3).Acquire(ctx, 3)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	eventually(t, "it is queued", func() bool { return masters.queues(t) > len(masters)/2 })
	small := masters.client(t).Semaphore("sem", 3)
	var all sync.WaitGroup
	stop, end := context.WithCancel(ctx)
	for range 4 {
		all.Go(func() {
			for {
				lease, err := small.Acquire(stop, 1)
				if err != nil {
					return
				}
				unlocks(t, lease)
			}
		})
	}
	for _, lease := range first {
		unlocks(t, lease)
	}
	unlocks(t, arrival(t, "all three permits", got))
	end()
	all.Wait()
	masters.mustKeepNothing(t)
}

// The size of a semaphore outlives its last change for as long as permits are held.
func TestReal_semaphore_keeps_its_size_while_a_permit_is_held(t *testing.T) {
	masters := startMasters(t, 3)
	events := &diary{}
	sem := masters.client(t, redlock.WithObserver(events.observe)).Semaphore("sem", 2)
	lease, err := sem.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	masters.doAll(t, "PEXPIRE", "redlock:permits:sem", 30_000)

	if err := lease.Extend(ctx, 2*second); err != nil {
		t.Fatal(err)
	}

	kept := 0
	for _, s := range masters {
		if do(t, s, "PTTL", "redlock:permits:sem").(int64) > 60_000 {
			kept++
		}
	}
	if kept < 2 {
		t.Errorf("%d masters keep the size of the semaphore", kept)
	}
	unlocks(t, lease)
}

func TestReal_semaphore_a_minority_that_missed_a_resize_hurts_nobody(t *testing.T) {
	masters := startMasters(t, 5)
	s := masters.client(t).Semaphore("sem", 2)
	if err := s.Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}
	for _, m := range masters[:2] {
		do(t, m, "SET", "redlock:permits:sem", 2)
	}
	_, err := s.TryAcquire(ctx, 1)
	mustBe(t, err, redlock.ErrPermits)
	three := masters.client(t).Semaphore("sem", 3)

	all, err := three.TryAcquire(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	_, err = three.TryAcquire(ctx, 1)
	mustBe(t, err, redlock.ErrTaken)

	if err := all.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// Who waits with a handle of the old size is told, and waits no more.
func TestReal_semaphore_resize_ends_the_wait_of_those_who_know_the_old_size(t *testing.T) {
	masters := startMasters(t, 5)
	s := masters.client(t).Semaphore("sem", 2)
	all, err := s.Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 3
	results := make(chan error, waiters)
	other := masters.client(t).Semaphore("sem", 2)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range waiters {
		go func() {
			_, err := other.Acquire(within, 1)
			results <- err
		}()
	}
	eventually(t, "they are queued", func() bool { return masters.queues(t) > len(masters)/2 })

	if err := s.Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}

	for range waiters {
		mustBe(t, arrival(t, "the end of a wait", results), redlock.ErrPermits)
	}
	// Also while the client remembers that others have waited.
	_, err = other.Acquire(within, 1)
	mustBe(t, err, redlock.ErrPermits)
	last, err := masters.client(t).Semaphore("sem", 3).Acquire(within, 1)
	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, all)
	unlocks(t, last)
	masters.mustKeepNothing(t)
}

// Permits that are held stay with their holders, and count: nobody gets another one
// until there is room among fewer.
func TestReal_semaphore_of_fewer_permits_gives_none_while_more_are_held(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	four := c.Semaphore("sem", 4)
	held := make([]*redlock.Lease, 4) // by slot, so that those below two are free first
	for range held {
		lease, err := four.Acquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		inspect(t, c, "sem", func(h redlock.Holder) bool {
			i := slices.IndexFunc(h.Shares, func(s redlock.Share) bool { return s.Value == lease.Value() })
			if i >= 0 {
				held[h.Shares[i].Slots[0]] = lease
			}
			return i >= 0
		})
	}
	if err := four.Resize(ctx, 2); err != nil {
		t.Fatal(err)
	}
	two := c.Semaphore("sem", 2)
	for i, lease := range held {
		if i < 3 {
			_, err := two.TryAcquire(ctx, 1)
			mustBe(t, err, redlock.ErrTaken)
			if n, err := two.Available(ctx); n != 0 || err != nil {
				t.Errorf("%d are free while %d of two are held, %v", n, len(held)-i, err)
			}
		}
		unlocks(t, lease)
		eventually(t, "all masters know", func() bool {
			for _, s := range masters {
				if do(t, s, "ZCARD", "redlock:slots:sem") != int64(len(held)-i-1) {
					return false
				}
			}
			return true
		})
	}

	both, err := two.TryAcquire(ctx, 2)

	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, both)
	masters.mustKeepNothing(t)
}

// Resizes of one semaphore at once, some of which reach only a part of the masters:
// the next one counts everywhere.
func TestReal_semaphore_resizes_at_once_leave_one_number(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	const resizers = 6
	c := masters.client(t)
	if err := c.Semaphore("sem", 4).Resize(ctx, 4); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		var all sync.WaitGroup
		for i := range resizers {
			sem := masters.client(t).Semaphore("sem", 4)
			all.Go(func() {
				err := sem.Resize(ctx, 5+i)
				if err != nil && !errors.Is(err, redlock.ErrPermits) && !errors.Is(err, redlock.ErrNoQuorum) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Wait()
		eventually(t, "all masters have one number", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })
		h, err := c.Inspect(ctx, "sem")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Semaphore("sem", h.Permits).Resize(ctx, 4); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	all, err := c.Semaphore("sem", 4).TryAcquire(ctx, 4)
	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, all)
}

// What arrives at a master only behind a later Resize changes nothing there.
func TestReal_semaphore_resize_that_is_late_changes_nothing(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	stored := func() string { return masters.values(t, "redlock:permits:sem")[0] }
	if err := c.Semaphore("sem", 4).Resize(ctx, 9); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first has it", func() bool { return stored() != "" })
	_, order, _ := strings.Cut(stored(), " ")
	if err := c.Semaphore("sem", 9).Resize(ctx, 5); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first has the other", func() bool { return strings.HasPrefix(stored(), "5 ") })
	before := stored()
	at, err := strconv.ParseInt(order, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	late := wire.PermitsOf("", "sem").Resize(9, at)
	args := []any{late.Script.SHA, len(late.Keys)}
	for _, arg := range append(slices.Clone(late.Keys), late.Args...) {
		args = append(args, arg)
	}
	_, err = masters[0].Do("EVALSHA", args...)

	if err == nil || err.Error() != "PERMITS 5" {
		t.Errorf("%v, want that there are 5 permits", err)
	}
	if stored() != before {
		t.Errorf("it stores %q, and had %q", stored(), before)
	}
}

// Whatever number a minority has, the next Resize counts there too.
func TestReal_semaphore_resize_reaches_masters_with_a_third_number(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	ahead := fmt.Sprintf("6 %d", time.Now().Add(time.Hour).UnixMicro()) // by a clock that is ahead
	for i, s := range masters {
		do(t, s, "SET", "redlock:permits:sem", []string{"4 100", "4 100", "4 100", ahead, "9"}[i])
	}

	if err := c.Semaphore("sem", 4).Resize(ctx, 5); err != nil {
		t.Fatal(err)
	}

	eventually(t, "all have the new number", func() bool {
		sizes := masters.distinct(t, "redlock:permits:sem")
		return len(sizes) == 1 && strings.HasPrefix(sizes[0], "5 ")
	})
}

// A master that was away when the number was changed is told by a lease that lasts.
func TestReal_semaphore_a_lease_tells_masters_that_missed_a_resize(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	if err := c.Semaphore("sem", 2).Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })
	want := masters.distinct(t, "redlock:permits:sem")
	do(t, masters[0], "SET", "redlock:permits:sem", "2 1")
	do(t, masters[1], "SET", "redlock:permits:sem", "7")
	lease, err := c.Semaphore("sem", 3).Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}

	if err := lease.Extend(ctx, 2*second); err != nil {
		t.Fatal(err)
	}

	eventually(t, "all have it again", func() bool { return slices.Equal(masters.distinct(t, "redlock:permits:sem"), want) })
	unlocks(t, lease)
	masters.mustKeepNothing(t)
}

// distinct returns what the masters store, each once.
func (ms realMasters) distinct(t *testing.T, key string) []string {
	t.Helper()
	return slices.Compact(slices.Sorted(slices.Values(ms.values(t, key))))
}

// A waiter for as many permits as one lease may have is served when they are free, with the
// usual node timeout.
func TestReal_L47_waiter_for_thousands_of_permits_is_served(t *testing.T) {
	masters := startMasters(t, 3)
	usual := []redlock.Option{redlock.WithTTL(10 * second), redlock.WithNodeTimeout(defaults.NodeTimeout)}
	first, err := masters.client(t, redlock.WithTTL(10*second)).Semaphore("sem", wire.MaxAcquire).Acquire(ctx, wire.MaxAcquire)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := masters.client(t, usual...).Semaphore("sem", wire.MaxAcquire).Acquire(within, wire.MaxAcquire)
		got <- err
	}()
	eventually(t, "it is queued", func() bool { return do(t, masters[0], "ZCARD", "redlock:permitqueue:sem") == int64(1) })
	unlocks(t, first)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// What a script costs rises with the permits of a lease no faster than in proportion: it
// calls no command for each of them. Of those who wait it tells 64, and those who take
// permits have the next ones told.
func TestReal_L47_scripts_of_a_semaphore_call_few_commands(t *testing.T) {
	s := startMasters(t, 1)[0]
	const k = wire.MaxPermits
	p := wire.PermitsOf("", "sem")
	who := func(i int) string { return fmt.Sprintf("c/abcdefghijklmnop/%d:1", i) }
	numbers := make([]string, wire.MaxAcquire)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	list := wire.Slots(strings.Join(numbers, ","))
	commands := func() (n int) {
		for _, name := range []string{"zadd", "zrem", "zrange", "hset", "hget", "hmget", "hdel", "hexists", "publish"} {
			n += calls(t, s, name)
		}
		return n
	}
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Do("SUBSCRIBE", "redlock:wait:c/abcdefghijklmnop"); err != nil {
		t.Fatal(err)
	}
	ask := func(i, n int) *wire.Command {
		return p.Take(wire.OpAsk, who(i), time.Minute, int64(i), k, n, 0, 0)
	}
	for _, c := range []struct {
		what string
		cmd  *wire.Command
		most int
	}{
		{"take", p.Take(wire.OpAcquire, who(1), time.Minute, 0, k, len(numbers), 0, 0), 20},
		{"extend", p.Extend(who(1), time.Minute, list, k, 0), 20},
		{"ask", ask(2, len(numbers)), 20},
		{"ask in vain", ask(3, len(numbers)), 20},
		{"move", p.Move(who(2), time.Minute, list, k, 0, 0), 40},
		{"release", p.Release(who(1), time.Minute), 20},
	} {
		before := commands()
		runAt(t, s, c.cmd)
		if n := commands() - before; n > c.most {
			t.Errorf("%s: %d commands for %d permits", c.what, n, len(numbers))
		}
	}
	do(t, s, "FLUSHALL")
	do(t, s, "CONFIG", "RESETSTAT")
	runAt(t, s, p.Take(wire.OpAcquire, who(1), time.Minute, 0, k, len(numbers), 0, 0))
	runAt(t, s, p.Take(wire.OpAcquire, who(2), time.Minute, 0, k, len(numbers), 0, 0))
	for i := range 200 {
		runAt(t, s, ask(10+i, 1))
	}
	for _, told := range []int{64, 128} {
		runAt(t, s, p.Release(who(told/64), time.Minute))
		if n := calls(t, s, "publish"); n != told {
			t.Errorf("%d messages, want %d", n, told)
		}
	}
}
