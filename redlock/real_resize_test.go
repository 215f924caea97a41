package redlock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// After a Resize to fewer the permits that are held count, whichever masters know of
// them: each of these three is known to two of the masters only.
func TestReal_S39_after_a_resize_to_fewer_what_any_master_knows_counts(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(10*time.Minute))
	five := c.Semaphore("sem", 5)
	var held []*redlock.Lease
	for range 5 {
		lease, err := five.Acquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, lease)
	}
	bySlot := make([]*redlock.Lease, 5)
	inspect(t, c, "sem", func(h redlock.Holder) bool {
		for _, s := range h.Shares {
			i := slices.IndexFunc(held, func(l *redlock.Lease) bool { return l.Value() == s.Value })
			bySlot[s.Slots[0]] = held[i]
		}
		return !slices.Contains(bySlot, nil)
	})
	unlocks(t, bySlot[1])
	unlocks(t, bySlot[2])
	for i, slot := range []int{0, 3, 4} {
		runAt(t, masters[i], wire.PermitsOf("", "sem").Release(bySlot[slot].Value(), time.Minute))
	}
	if err := five.Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}

	lease, err := c.Semaphore("sem", 3).TryAcquire(ctx, 1)

	if err == nil {
		t.Errorf("a fourth permit of three: %s", lease.Value())
	}
	mustBe(t, err, redlock.ErrTaken)
}

// Who waits for many permits with a handle of the old number holds nobody up who
// knows the new one.
func TestReal_semaphore_resize_tells_all_who_wait_with_the_old_number(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(10*time.Minute))
	two := c.Semaphore("sem", 2)
	if _, err := two.Acquire(ctx, 2); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := masters.client(t, redlock.WithTTL(10*time.Minute)).Semaphore("sem", 2).Acquire(ctx, 2)
		ended <- err
	}()
	eventually(t, "it is queued", func() bool { return masters.queues(t) == len(masters) })

	if err := two.Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}

	got := make(chan error, 1)
	go func() {
		_, err := c.Semaphore("sem", 3).Acquire(ctx, 1)
		got <- err
	}()
	mustBe(t, arrival(t, "the end of the wait", ended), redlock.ErrPermits)
	if err := arrival(t, "the third permit", got); err != nil {
		t.Error(err)
	}
}

// Who knows another number is told so, also where fewer than a majority say it before
// it is clear that no majority can be had.
func TestReal_semaphore_wrong_number_is_told_by_an_even_number_of_masters(t *testing.T) {
	masters := startMasters(t, 4)
	c := masters.client(t)
	if err := c.Semaphore("sem", 2).Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all know", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })

	_, err := c.Semaphore("sem", 2).TryAcquire(ctx, 1)

	mustBe(t, err, redlock.ErrPermits)
	_, err = masters.client(t).Semaphore("sem", 2).Acquire(ctx, 1)
	mustBe(t, err, redlock.ErrPermits)
}

func TestReal_semaphore_wrong_number_is_told_while_a_master_is_down(t *testing.T) {
	masters := startMasters(t, 5)
	c := masters.client(t)
	if err := c.Semaphore("sem", 2).Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all know", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })
	masters[0].Kill()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	_, err := c.Semaphore("sem", 2).Acquire(within, 1)

	mustBe(t, err, redlock.ErrPermits)
}

// Who gets a permit tells the masters that missed the Resize, or that another lease
// has told an older number since.
func TestReal_semaphore_whoever_gets_a_permit_tells_masters_that_missed_a_resize(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]redlock.SemaphoreOption{nil, {redlock.Fenced()}} {
		masters := startMasters(t, 5)
		c := masters.client(t)
		if err := c.Semaphore("sem", 2).Resize(ctx, 3); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all know", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })
		want := masters.distinct(t, "redlock:permits:sem")
		do(t, masters[3], "SET", "redlock:permits:sem", "2 1")
		do(t, masters[4], "SET", "redlock:permits:sem", "3")

		eventually(t, "all know again", func() bool {
			lease, err := c.Semaphore("sem", 3, append(opts, redlock.NoRenew())...).Acquire(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			unlocks(t, lease)
			return slices.Equal(masters.distinct(t, "redlock:permits:sem"), want)
		})
	}
}

// A claim that began before a Resize to fewer does not move behind it; a lease is put
// back where it was lost.
func TestReal_semaphore_no_move_behind_a_resize_to_fewer(t *testing.T) {
	s := startMasters(t, 1)[0]
	p := wire.PermitsOf("", "sem")
	take := func(value string) any { return runAt(t, s, p.Take(wire.OpAcquire, value, time.Minute, 0, 5, 1, 0, 0)) }
	for _, value := range []string{"c/abcdefghijklmnop/1:0", "c/abcdefghijklmnop/2:0"} {
		if _, ok := take(value).([]any); !ok {
			t.Fatal("no permit")
		}
	}
	runAt(t, s, p.Resize(3, 20))

	if moved := runAt(t, s, p.Move("c/abcdefghijklmnop/1:0", time.Minute, "4", 5, 10, 0)); moved != nil {
		t.Errorf("moved: %q", moved)
	}
	if n := do(t, s, "ZCARD", "redlock:slots:sem"); n != int64(1) {
		t.Errorf("%v slots are taken, want that of the other", n)
	}
	if back := runAt(t, s, p.Repair("c/abcdefghijklmnop/1:0", time.Minute, "4", 5, 10, 0)); back == nil {
		t.Error("the lease was not put back")
	}
	if moved := runAt(t, s, p.Move("c/abcdefghijklmnop/1:0", time.Minute, "2", 2, 10, 0)); moved == nil {
		t.Error("it did not move although there are more by now than it knows of")
	}
}

func TestReal_semaphore_resize_says_what_is_wrong(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	sem := c.Semaphore("sem", 2)
	for _, permits := range []int{0, -1, wire.MaxPermits + 1} {
		if err := sem.Resize(ctx, permits); err == nil || !strings.Contains(err.Error(), "Resize: "+strconv.Itoa(permits)+" permits") {
			t.Errorf("Resize(%d): %v", permits, err)
		}
	}
	if sizes := masters.distinct(t, "redlock:permits:sem"); len(sizes) != 1 || sizes[0] != "" {
		t.Errorf("stored: %q", sizes)
	}
	before := time.Now().UnixMicro()
	if err := sem.Resize(ctx, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all know", func() bool { return len(masters.distinct(t, "redlock:permits:sem")) == 1 })
	_, order, _ := strings.Cut(masters.values(t, "redlock:permits:sem")[0], " ")
	if at, err := strconv.ParseInt(order, 10, 64); err != nil || at < before {
		t.Errorf("the order %q is not above those that masters that are away may have, which are clocks before %d", order, before)
	}
	mustBe(t, sem.Resize(ctx, 4), redlock.ErrPermits)
	if err := sem.Resize(ctx, 3); err != nil {
		t.Errorf("once more to what it is: %v", err)
	}
	within, cancel := context.WithCancel(ctx)
	cancel()
	mustBe(t, sem.Resize(within, 3), context.Canceled)
	masters[0].Kill()
	masters[1].Kill()
	mustBe(t, c.Semaphore("sem", 3).Resize(ctx, 4), redlock.ErrNoQuorum)
	c.Close()
	mustBe(t, c.Semaphore("sem", 3).Resize(ctx, 4), redlock.ErrClosed)
}
