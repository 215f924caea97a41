package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// stops are the calls of a stop.
type stops struct {
	mu     sync.Mutex
	causes []error
	during func() // called in each of them, if not nil
}

func (s *stops) stop(cause error) {
	s.mu.Lock()
	s.causes = append(s.causes, cause)
	s.mu.Unlock()
	if s.during != nil {
		s.during()
	}
}

func (s *stops) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.causes)
}

// mustCome waits for the only call, and checks its cause and that it names the lock.
func (s *stops) mustCome(t *testing.T, cause error) {
	t.Helper()
	eventually(t, "stop is called", func() bool { return s.count() > 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.causes[0]; len(s.causes) > 1 || !errors.Is(got, cause) || !strings.Contains(got.Error(), `"orders"`) {
		t.Errorf("stopped for %v, want %v once, with the name of the lock", s.causes, cause)
	}
}

func (s *stops) mustNotCome(t *testing.T) {
	t.Helper()
	time.Sleep(5 * time.Millisecond) // a mocked clock calls in goroutines of its own
	if s.count() > 0 {
		t.Errorf("stopped for %v", s.causes)
	}
}

const (
	grace = 400 * time.Millisecond
	whole = 968 * time.Millisecond // the validity for a TTL of 1 s
	lead  = 20 * time.Millisecond  // the most that an end comes early
)

func setAll(links []*link, s linkState) {
	for _, l := range links {
		l.set(s)
	}
}

func TestStopWithin_ends_the_context_before_and_then_stops_the_work(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
	if got := lease.Remaining(); got != whole-grace {
		t.Errorf("%v remain, want the validity without the grace, %v", got, whole-grace)
	}

	ms.pass(whole - grace - lead)
	if !lease.Valid() || lease.Context().Err() != nil {
		t.Error("ended before its time")
	}
	ms.pass(lead)
	mustEnd(t, lease.Context())
	mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
	if lease.Valid() || lease.Remaining() != 0 || !lease.Until().IsZero() {
		t.Errorf("still valid: %v", lease)
	}

	ms.pass(grace - lead - time.Millisecond)
	s.mustNotCome(t)
	for i, v := range ms.holders("orders") {
		if v != lease.Value() {
			t.Errorf("%s has given the lock back before the work was stopped", links[i].addr)
		}
	}
	ms.pass(lead)
	s.mustCome(t, redlock.ErrExpired)
	eventually(t, "the lock is released when stop has returned", func() bool { return strings.Join(ms.holders("orders"), "") == "" })
	mustBe(t, lease.Unlock(ctx), redlock.ErrExpired)
	ms.pass(2 * second)
	s.mustCome(t, redlock.ErrExpired)
}

func TestStopWithin_stops_no_work_under_a_lease_that_is_renewed(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))

	ms.pass(3 * second)

	s.mustNotCome(t)
	if !lease.Valid() {
		t.Error(lease.Err())
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
	ms.pass(2 * second)
	s.mustNotCome(t)
}

func TestStopWithin_stops_nothing_that_is_unlocked_in_time(t *testing.T) {
	for name, end := range map[string]func(*redlock.Lease){
		"Unlock":  func(l *redlock.Lease) { l.Unlock(ctx) },
		"Release": func(l *redlock.Lease) { l.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, _ := ms.client()
			var s stops
			lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
			ms.pass(whole - grace)
			mustEnd(t, lease.Context())
			ms.pass(grace / 2)
			if ms.holders("orders")[0] != lease.Value() {
				t.Error("released before it was unlocked")
			}

			end(lease)

			ms.mustBeFree("orders")
			ms.pass(second)
			s.mustNotCome(t)
		})
	}
}

// The masters have extended the keys, and their answers come when the context has ended.
func TestStopWithin_no_renewal_revives_a_lease_in_its_grace(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	setAll(links, holdReplies)
	ms.pass(whole - grace)
	mustEnd(t, lease.Context())

	setAll(links, up)

	if lease.Valid() {
		t.Error("valid again")
	}
	ms.pass(grace - lead - time.Millisecond)
	s.mustNotCome(t)
	ms.pass(lead)
	s.mustCome(t, redlock.ErrExpired)
}

func TestStopWithin_stops_immediately_when_the_lock_is_lost(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	during := make(chan struct{})
	s := stops{during: func() { <-during }}
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
	for i := range 3 {
		ms.forget(i, "orders")
	}

	mustBe(t, lease.Extend(ctx, second), redlock.ErrLost)

	mustEnd(t, lease.Context())
	ms.pass(time.Millisecond)
	s.mustCome(t, redlock.ErrLost)
	if ms.holders("orders")[4] != lease.Value() {
		t.Errorf("%s has given the lock back before stop has returned", links[4].addr)
	}
	close(during)
	eventually(t, "the rest is released", func() bool { return strings.Join(ms.holders("orders"), "") == "" })
	mustBe(t, lease.Unlock(ctx), redlock.ErrLost)
}

// The same, if a renewal that was sent before finds it out when the context has just ended.
func TestStopWithin_stops_immediately_when_the_lock_is_found_lost_in_the_grace(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	setAll(links, hung)
	ms.pass(whole - grace - 11*time.Millisecond) // 2 % before its end
	mustEnd(t, lease.Context())
	s.mustNotCome(t)
	for i := range 3 {
		ms.forget(i, "orders")
	}

	setAll(links, up)

	ms.pass(time.Millisecond)
	s.mustCome(t, redlock.ErrExpired)
}

func TestStopWithin_the_function_of_Do_is_the_work(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	m := c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop))
	began, goOn, result := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- redlock.Do(ctx, m, func(ctx context.Context) error { began <- ctx; <-goOn; return nil })
	}()
	work := arrival(t, "the function", began)
	ms.pass(whole - grace)
	mustEnd(t, work)
	s.mustNotCome(t)

	ms.pass(grace)

	s.mustCome(t, redlock.ErrExpired)
	close(goOn)
	mustBe(t, arrival(t, "the end of Do", result), redlock.ErrExpired)

	go func() { result <- redlock.Do(ctx, m, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
	eventually(t, "the function runs", func() bool { return ms.holders("orders")[0] != "" })
	eventually(t, "the end of Do", func() bool { ms.pass(10 * time.Millisecond); return len(result) > 0 })
	ms.pass(second)
	s.mustCome(t, redlock.ErrExpired) // no second time
}

func TestStopWithin_nested_holds_end_with_the_last(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	m := c.Mutex("orders", redlock.NoRenew(), redlock.Reentrant(), redlock.StopWithin(grace, s.stop))
	lease := mustLock(t, m)
	if _, err := m.Lock(lease.Context()); err != nil {
		t.Fatal(err)
	}
	ms.pass(whole - grace)
	mustEnd(t, lease.Context())

	lease.Unlock(ctx)
	if ms.holders("orders")[0] == "" {
		t.Error("released by the first of two")
	}
	lease.Unlock(ctx)

	ms.mustBeFree("orders")
	ms.pass(second)
	s.mustNotCome(t)
}

// A stop that blocks, an observer that blocks: neither holds up the stop of another lease, nor a
// renewal.
func TestStopWithin_nothing_that_blocks_holds_a_stop_up(t *testing.T) {
	ms := fiveMasters(t)
	var blocks atomic.Bool
	goOn := make(chan struct{})
	c, _ := ms.client(redlock.WithObserver(func(e redlock.Event) {
		if blocks.Load() && e.Kind == redlock.LeaseLost {
			<-goOn
		}
	}))
	blocked, s := stops{during: func() { <-goOn }}, stops{}
	one := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, blocked.stop)))
	renewed := mustLock(t, c.Mutex("renewed"))
	ms.pass(whole - 10*time.Millisecond)
	blocked.mustCome(t, redlock.ErrExpired)
	ms.pass(2 * second)
	if !renewed.Valid() {
		t.Errorf("a stop that blocks has held up a renewal: %v", renewed)
	}

	renewed.Unlock(ctx)

	// It ends at the same instant as the next, and so is its work stopped. Each stop waits for the other.
	var both sync.WaitGroup
	both.Add(2)
	meet := func() { both.Done(); both.Wait() }
	mustLock(t, c.Mutex("another", redlock.NoRenew(), redlock.StopWithin(grace, func(error) { meet() })))
	var other *redlock.Lease
	other = mustLock(t, c.Mutex("orders too", redlock.NoRenew(), redlock.StopWithin(grace, func(cause error) {
		if other.Context().Err() == nil {
			t.Error("stopped before its context has ended")
		}
		meet()
		s.stop(&redlock.Error{Op: "hold", Name: "orders", Err: cause})
	})))
	blocks.Store(true)
	ms.pass(whole - lead - time.Millisecond)
	if other.Context().Err() != nil {
		t.Error("its end was not held up, so that this shows nothing")
	}
	ms.pass(lead)

	s.mustCome(t, redlock.ErrExpired)
	close(goOn)
	one.Unlock(ctx)
	eventually(t, "the observer is told", func() bool { return ms.holders("orders too")[0] == "" })
}

// counting is a clock that counts the timers that were set.
type counting struct {
	*clock.Mock
	set atomic.Int32
}

func (c *counting) AfterFunc(d time.Duration, f func()) *clock.Timer {
	c.set.Add(1)
	return c.Mock.AfterFunc(d, f)
}

func TestStopWithin_leaves_no_timer_behind_an_Unlock(t *testing.T) {
	ms := fiveMasters(t)
	timers := &counting{Mock: ms.clk}
	c, _ := ms.client(redlock.WithClock(timers), redlock.WithTTL(10*second))
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(second, s.stop)))
	before := timers.set.Load()
	ms.pass(2 * second)
	if timers.set.Load() == before {
		t.Error("nothing looks at the clock while the lease is held, so that this shows nothing")
	}
	lease.Unlock(ctx)
	ms.pass(2 * second)

	before = timers.set.Load()
	ms.pass(3 * second)

	if n := timers.set.Load() - before; n > 0 {
		t.Errorf("%d timers were set when nothing was held", n)
	}
}

// S12: the monotonic clock stood still, and with it every timer. Within a second of it the clock
// is looked at.
func TestS12_StopWithin_after_a_suspend(t *testing.T) {
	ms := fiveMasters(t)
	machine := &suspended{Mock: ms.clk}
	c, _ := ms.client(redlock.WithClock(machine), redlock.WithTTL(10*second))
	var s stops
	mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(second, s.stop)))

	machine.sleep(time.Minute)

	ms.pass(second)
	s.mustCome(t, redlock.ErrExpired)
}

// S47: it turns out that our own clock is slow, also when the context has ended.
func TestS47_StopWithin_counts_by_the_clocks_of_most_masters(t *testing.T) {
	t.Parallel()
	ms, w, c := watchedClient(t, 1)
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(4*second, s.stop)))
	const whole = 9878 * time.Millisecond

	w.set(1.25) // in 8 s of ours 10 pass

	ms.pass((whole - 4*second) * 4 / 5)
	mustEnd(t, lease.Context())
	ms.pass(4*second*4/5 - lead - time.Millisecond)
	s.mustNotCome(t)
	ms.pass(lead)
	s.mustCome(t, redlock.ErrExpired)

	again := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(4*second, s.stop)))
	ms.pass((whole - 4*second) * 4 / 5)
	mustEnd(t, again.Context())
	w.set(2)
	ms.pass(time.Millisecond)
	ms.pass(whole/2 - (whole-4*second)*4/5)
	eventually(t, "stopped again", func() bool { return s.count() == 2 })
}

func TestStopWithin_Close_waits_for_Unlock(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	closed := closeLater(t, c, lease)
	mustBe(t, context.Cause(lease.Context()), redlock.ErrClosed)
	ms.pass(grace / 2)
	if ms.holders("orders")[0] != lease.Value() || len(closed) > 0 {
		t.Error("Close has not waited for the work")
	}

	mustBe(t, lease.Unlock(ctx), redlock.ErrClosed)

	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
	ms.pass(second)
	s.mustNotCome(t)
}

// stop may be called while Close waits, and may call Close itself.
func TestStopWithin_Close_waits_no_longer_than_the_grace(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client(redlock.WithTTL(10 * second))
	s := stops{during: func() {
		time.Sleep(5 * time.Millisecond) // the other Close waits for it
		c.Close()
	}}
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	closed := closeLater(t, c, lease)
	ms.pass(grace - time.Millisecond)
	s.mustNotCome(t)

	ms.pass(time.Millisecond)

	s.mustCome(t, redlock.ErrClosed)
	mustName(t, arrival(t, "the end of Close", closed), []string{`"orders"`, "stop has not returned"})
	mustBe(t, c.Close(), redlock.ErrUndelivered)
	mustKeep(t, ms, lease)
}

func mustKeep(t *testing.T, ms *masters, lease *redlock.Lease) {
	t.Helper()
	for i, v := range ms.holders("orders") {
		if v != lease.Value() {
			t.Errorf("master %d has given the lock back before stop has returned", i)
		}
	}
}

// It may also be the first to call Close.
func TestStopWithin_stop_may_close_the_client(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	closed := make(chan error, 1)
	s := stops{during: func() { closed <- c.Close() }}
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))

	ms.pass(whole - lead/2)

	mustBe(t, arrival(t, "the end of Close", closed), redlock.ErrUndelivered)
	mustKeep(t, ms, lease)
}

func TestStopWithin_Close_waits_for_stop(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]bool{"which returns": true, "but not for too long": false} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, _ := ms.client(redlock.WithTTL(10 * second))
			during := make(chan struct{})
			s := stops{during: func() { <-during }}
			lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
			another := mustLock(t, c.Mutex("another", redlock.StopWithin(grace, func(error) {})))
			closed := closeLater(t, c, another)
			ms.pass(grace)
			s.mustCome(t, redlock.ErrClosed)
			ms.mustBeFree("another")
			time.Sleep(5 * time.Millisecond) // Close asks for the timer of its wait
			ms.pass(3*second - time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			mustKeep(t, ms, lease)
			if len(closed) > 0 {
				t.Error("Close has not waited for stop")
			}
			if returns {
				close(during)
				if err := arrival(t, "the end of Close", closed); err != nil {
					t.Error(err)
				}
				ms.mustBeFree("orders")
				return
			}
			defer close(during)

			eventually(t, "the end of Close", func() bool { ms.pass(second); return len(closed) > 0 })

			mustBe(t, <-closed, redlock.ErrUndelivered)
			mustKeep(t, ms, lease)
		})
	}
}

// L17: a repair is held up until Close has given its releases, and stop still runs.
func TestStopWithin_the_release_follows_a_repair_that_is_held_up(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(10 * second))
	reached, goOn, during := make(chan struct{}), make(chan struct{}), make(chan struct{})
	links[4].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRepair {
			close(reached)
			<-goOn
		}
	}
	s := stops{during: func() { <-during }}
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	ms.forget(4, "orders")
	go lease.Extend(ctx, 10*second)
	arrival(t, "the repair", reached)
	closed := closeLater(t, c, lease)
	ms.pass(grace)
	s.mustCome(t, redlock.ErrClosed)
	time.Sleep(5 * time.Millisecond) // Close gives the releases that do not wait for stop

	close(goOn)
	eventually(t, "the repair", func() bool { return ms.holders("orders")[4] != "" })
	close(during)

	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
}

// Closed in the grace, it is stopped at the end of the validity.
func TestStopWithin_Close_in_the_grace_does_not_lengthen_it(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
	ms.pass(whole - grace)
	mustEnd(t, lease.Context())
	ms.pass(grace / 2)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	eventually(t, "Close has begun", func() bool {
		_, err := c.Mutex("another").TryLock(ctx)
		return errors.Is(err, redlock.ErrClosed)
	})

	ms.pass(grace / 2)

	s.mustCome(t, redlock.ErrExpired)
	arrival(t, "the end of Close", closed)
	ms.mustBeFree("orders")
}

// The lease was lost in its grace, and Unlock must say so: the grace is part of the validity.
func TestStopWithin_Unlock_in_time_says_what_was_lost(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithNodeTimeout(2 * second))
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
	for i := range 3 {
		ms.forget(i, "orders")
	}
	setAll(links, holdReplies)
	result := make(chan error, 1)
	go func() { result <- lease.Unlock(ctx) }()
	mustEnd(t, lease.Context())
	eventually(t, "the release has run", func() bool { return ms.nodes[4].count(wire.OpRelease) > 0 })
	ms.pass(whole - grace)

	setAll(links, up)

	mustBe(t, arrival(t, "the end of Unlock", result), redlock.ErrLost)
}

func TestStopWithin_Extend_refuses_a_TTL_that_is_too_short_for_the_grace(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.StopWithin(grace, s.stop)))
	mustName(t, lease.Extend(ctx, 500*time.Millisecond), []string{"StopWithin(400ms)", "at most half", "TTL of 500ms"})
	if err := lease.Extend(ctx, 900*time.Millisecond); err != nil {
		t.Error(err)
	}
	if got, want := lease.Remaining(), 869*time.Millisecond-grace; got != want {
		t.Errorf("%v remain, want %v", got, want)
	}
	lease.Unlock(ctx)
}

func TestStopWithin_takes_a_grace_from_1ms_to_half_of_the_validity(t *testing.T) {
	for grace, ok := range map[time.Duration]bool{
		time.Millisecond - 1: false,
		time.Millisecond:     true,
		whole / 2:            true,
		whole/2 + 1:          false,
	} {
		ms := fiveMasters(t)
		c, _ := ms.client()
		var s stops
		lease, err := c.Mutex("orders", redlock.StopWithin(grace, s.stop)).TryLock(ctx)
		if (err == nil) != ok {
			t.Errorf("%v: %v", grace, err)
		}
		if err == nil {
			lease.Unlock(ctx)
		}
	}
}

func TestStopWithin_MaxHold_ends_renewals_where_only_the_grace_is_left(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.MaxHold(2*second), redlock.StopWithin(grace, s.stop)))
	for lease.Valid() {
		if left := lease.Remaining(); left < 0 {
			t.Fatalf("%v remain", left)
		}
		ms.pass(10 * time.Millisecond)
	}
	s.mustNotCome(t)
	ms.pass(grace)
	s.mustCome(t, redlock.ErrExpired)
}
