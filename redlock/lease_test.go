package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestLease_is_renewed_as_long_as_it_is_held(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))

	ms.pass(10 * second)

	if !lease.Valid() {
		t.Fatalf("not valid: %v", lease.Err())
	}
	if left := lease.Until().Sub(ms.clk.Now()); left < 500*time.Millisecond {
		t.Errorf("%v left", left)
	}
	lease.Unlock(ctx)
	ms.mustBeFree("orders")
}

func TestNoRenew_leases_end_by_themselves(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))

	ms.pass(second)

	mustEnd(t, lease.Context())
	mustBe(t, lease.Err(), redlock.ErrExpired)
	mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
}

func TestLease_survives_the_loss_of_a_minority(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	links[0].set(down)
	links[3].set(hung)

	ms.pass(10 * second)

	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

func TestA_renewal_that_failed_is_tried_again_while_there_is_time(t *testing.T) {
	for name, cut := range map[string]linkState{"down": down, "hung": hung} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, links := ms.client()
			lease := mustLock(t, c.Mutex("orders"))
			for _, l := range links {
				l.set(cut)
			}
			ms.pass(800 * time.Millisecond) // the renewal at a third has failed

			for _, l := range links {
				l.set(up)
			}
			ms.pass(second)

			if !lease.Valid() {
				t.Errorf("not valid: %v", lease.Err())
			}
		})
	}
}

// L82: while a renewal waits for masters that hang, one that has failed is back. It is asked again, and
// completes the majority.
func TestL82_a_renewal_does_not_wait_for_a_master_that_hangs_where_another_is_back(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	links[0].set(hung)
	links[1].set(hung)
	links[2].set(down)
	ms.pass(second / 16) // the first renewal
	links[2].set(up)

	ms.pass(2 * second)

	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

// S5: a master has forgotten what it knew. One lease is renewed at once, and not with the jitter
// that spreads thousands.
func TestS5_a_lease_is_renewed_when_a_master_has_forgotten(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(100 * second))
	lease := mustLock(t, c.Mutex("orders"))
	ms.forget(3, "orders")

	links[3].forgets()

	ms.pass(20 * time.Millisecond)
	if got := ms.holders("orders")[3]; got != lease.Value() {
		t.Errorf("the master stores %q", got)
	}
}

func TestS31_loss_is_announced_before_the_old_validity_ends(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]linkState{"down": down, "hung": hung, "replies lost": holdReplies} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, links := ms.client()
			lease := mustLock(t, c.Mutex("orders"))
			ms.pass(300 * time.Millisecond) // just before the first renewal
			until := lease.Until()
			for _, l := range links {
				l.set(cut)
			}

			for ms.clk.Now().Before(until) {
				ms.clk.Add(time.Millisecond)
			}

			eventually(t, "the context is cancelled", func() bool { return lease.Context().Err() != nil })
			mustBe(t, lease.Err(), redlock.ErrExpired)
		})
	}
}

func TestS19_a_lost_quorum_is_not_recreated(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for i := range 3 {
		ms.forget(i, "orders")
	}

	ms.pass(second / 2) // the next renewal finds out

	mustEnd(t, lease.Context())
	mustBe(t, lease.Err(), redlock.ErrLost)
	ms.mustBeFree("orders")
}

func TestS17_s_18_a_minority_that_lost_the_key_is_refilled(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))

	// One master after the other loses the key, far more than a quorum could
	// bear; each is refilled by the renewal after.
	for i := range 20 {
		ms.forget(i%5, "orders")
		ms.pass(second / 2)
	}

	if !lease.Valid() {
		t.Fatalf("not valid: %v", lease.Err())
	}
	for i, v := range ms.holders("orders") {
		if v != lease.Value() {
			t.Errorf("%s holds %q", ms.nodes[i].addr, v)
		}
	}
}

func TestS17_masters_that_missed_the_acquire_get_it_later(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	links[3].set(down)
	links[4].set(down)
	lease := mustLock(t, c.Mutex("orders"))
	links[3].set(up)
	links[4].set(up)

	ms.pass(second / 2)

	for i, v := range ms.holders("orders") {
		if v != lease.Value() {
			t.Errorf("%s holds %q, want the lease's value", ms.nodes[i].addr, v)
		}
	}
}

// A node that was repaired counts only from the next round on: of two that
// grant and one that was just refilled, no quorum follows.
func TestS19_a_repaired_node_does_not_count_in_the_round_that_repaired_it(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	links[3].set(down)
	links[4].set(down)
	ms.forget(2, "orders")

	ms.pass(second)

	mustBe(t, lease.Err(), redlock.ErrExpired)
	if v := ms.holders("orders")[2]; v != "" {
		t.Errorf("the third master was refilled without a quorum: %q", v)
	}
}

func TestL15_a_renewal_under_way_does_not_outlive_Unlock(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	ms.forget(4, "orders") // so that the renewal repairs
	for _, l := range links {
		l.set(hung)
	}
	ms.pass(400 * time.Millisecond) // the renewal waits in the links
	unlocked := make(chan error)
	go func() { unlocked <- lease.Unlock(ctx) }()
	mustEnd(t, lease.Context())

	for _, l := range links {
		l.set(up)
	}
	receive(t, ms, unlocked)
	ms.pass(5 * second)

	ms.mustBeFree("orders")
}

// The lease ends between the look at it and the repair: the repair would put
// back, behind the release, what nobody holds.
func TestL15_a_repair_under_way_does_not_outlive_Unlock(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	ms.forget(4, "orders")
	unlocked := false
	links[4].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRepair {
			links[4].before = nil
			unlocked = lease.Unlock(ctx) == nil
		}
	}

	ms.pass(second / 2) // a renewal, and the repair after it

	if !unlocked {
		t.Fatal("nothing was repaired")
	}
	ms.mustBeFree("orders")
}

// L94: the wall clock is ahead for a few looks at it, while the key is put back. A lease that is valid then
// keeps its key.
func TestL94_a_clock_that_is_ahead_for_a_moment_takes_no_repaired_key_away(t *testing.T) {
	for looks := range 4 {
		ms := fiveMasters(t)
		wall := &moved{Clock: ms.clk}
		c, links := ms.client(redlock.WithClock(wall))
		lease := mustLock(t, c.Mutex("orders"))
		ms.forget(4, "orders")
		repaired := false
		links[4].before = func(cmd *wire.Command) {
			if cmd.Op == wire.OpRepair && !repaired {
				repaired, wall.looks = true, looks
			}
		}

		ms.pass(second / 5) // the first renewal, and the repair after it
		wall.looks = 0

		if !repaired {
			t.Fatal("nothing was repaired")
		}
		if held := ms.holders("orders")[4] == lease.Value(); held != lease.Valid() {
			t.Errorf("ahead for %d looks: the lease says %v, E has its key: %v", looks, lease.Err(), held)
		}
	}
}

// moved is a clock whose wall time is an hour ahead for the next looks.
type moved struct {
	clock.Clock
	looks int
}

func (c *moved) Now() time.Time {
	if c.looks == 0 {
		return c.Clock.Now()
	}
	c.looks--
	return c.Clock.Now().Add(time.Hour)
}

func (c *moved) Monotonic() time.Duration { return time.Duration(c.Clock.Now().UnixNano()) }

func TestUnlock_of_a_lost_lease_says_so_and_deletes_the_rest(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for i := range 4 {
		ms.forget(i, "orders")
	}

	mustBe(t, lease.Unlock(ctx), redlock.ErrLost)

	ms.mustBeFree("orders")
	mustBe(t, lease.Unlock(ctx), redlock.ErrNotHeld)
}

func TestUnlock_without_a_quorum_says_so(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links[:3] {
		l.set(down)
	}

	mustBe(t, lease.Unlock(ctx), redlock.ErrNoQuorum)

	if lease.Valid() {
		t.Error("still valid")
	}
}

func TestExtend_lengthens_and_shortens(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))

	if err := lease.Extend(ctx, 10*second); err != nil {
		t.Fatal(err)
	}
	if left := lease.Until().Sub(ms.clk.Now()); left != 9878*time.Millisecond {
		t.Errorf("%v left after Extend(10s)", left)
	}
	if err := lease.Extend(ctx, second); err != nil {
		t.Fatal(err)
	}
	if left := lease.Until().Sub(ms.clk.Now()); left != 968*time.Millisecond {
		t.Errorf("%v left after Extend(1s)", left)
	}
}

func TestS6_an_extension_counts_from_before_its_first_send(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithNodeTimeout(10 * second))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	for _, l := range links {
		l.set(holdReplies)
	}
	result := make(chan error)
	go func() { result <- lease.Extend(ctx, second) }()
	eventually(t, "every master has extended", func() bool { return len(ms.nodes[4].ran()) == 2 })

	ms.pass(400 * time.Millisecond) // the answers are under way

	for _, l := range links {
		l.set(up)
	}
	if err := arrival(t, "the result", result); err != nil {
		t.Fatal(err)
	}
	if left := lease.Until().Sub(ms.clk.Now()); left != 568*time.Millisecond {
		t.Errorf("%v left, want what the keys have left, less drift", left)
	}
}

// A holder that is alive gives the lock back when the shorter term ends.
func TestExtend_to_less_ends_the_lease_earlier_and_the_lock_with_it(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(30*second)))

	if err := lease.Extend(ctx, second); err != nil {
		t.Fatal(err)
	}

	if left := lease.Until().Sub(ms.clk.Now()); left > second {
		t.Errorf("%v left, want no more than was asked for", left)
	}
	ms.pass(second)
	mustEnd(t, lease.Context())
	ms.mustBeFree("orders")
}

// The answers to Extend come when what it asked for is over.
func TestExtend_to_less_than_it_takes_says_that_the_lease_has_ended(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(30*second)))
	for _, l := range links {
		l.set(holdReplies)
	}
	result := make(chan error)
	go func() { result <- lease.Extend(ctx, 50*time.Millisecond) }()
	eventually(t, "every master has extended", func() bool { return len(ms.nodes[4].ran()) == 2 })

	ms.pass(100 * time.Millisecond)
	for _, l := range links {
		l.set(up)
	}

	mustBe(t, arrival(t, "the result", result), redlock.ErrExpired)
	mustEnd(t, lease.Context())
	ms.mustBeFree("orders")
}

// S44: without an answer of a quorum the lease goes on, and the masters that have answered
// keep the key as long, whatever the wall clock said meanwhile.
func TestS44_extend_to_less_that_fails_changes_nothing(t *testing.T) {
	ms := fiveMasters(t)
	machine := &suspended{Mock: ms.clk}
	c, links := ms.client(redlock.WithClock(machine), redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(30*second)))
	for _, l := range links[:3] {
		l.set(down)
	}
	before := lease.Until()

	machine.sleep(10 * second)
	mustBe(t, lease.Extend(ctx, second), redlock.ErrNoQuorum)
	machine.sleep(-10 * second)

	if got := lease.Until(); !got.Equal(before) {
		t.Errorf("valid until %v, want %v", got, before)
	}
	for i := range ms.nodes {
		if ends := ms.nodes[i].keys["orders"].ends; ends.Before(before) {
			t.Errorf("master %d lets the key end at %v, before the lease at %v", i, ends, before)
		}
	}
}

func TestExtend_never_reaches_past_the_end(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	for _, l := range links {
		l.set(hung) // the extend will arrive when the lease is over
	}
	result := make(chan error)
	go func() { result <- lease.Extend(ctx, second) }()
	ms.pass(second)
	for _, l := range links {
		l.set(up)
	}

	err := receive(t, ms, result)

	if err == nil || lease.Valid() {
		t.Errorf("extended past the end: %v, valid %v", err, lease.Valid())
	}
	mustBe(t, lease.Extend(ctx, second), redlock.ErrExpired)
}

// A machine that was suspended: its monotonic clock stood still, its timers have
// not rung, and what it says first must be true all the same.
func TestS12_a_lease_ends_in_a_suspend(t *testing.T) {
	ms := fiveMasters(t)
	machine := &suspended{Mock: ms.clk}
	c, _ := ms.client(redlock.WithClock(machine))
	lease := mustLock(t, c.Mutex("orders"))

	machine.sleep(second)

	if lease.Valid() || !lease.Until().IsZero() {
		t.Errorf("valid %v until %v after the TTL", lease.Valid(), lease.Until())
	}
	mustBe(t, lease.Err(), redlock.ErrExpired)
	asked := ms.nodes[0].count(wire.OpExtend)
	mustBe(t, lease.Extend(ctx, second), redlock.ErrExpired)
	if n := ms.nodes[0].count(wire.OpExtend) - asked; n != 0 {
		t.Errorf("a master was asked %d times to extend what is over", n)
	}
	mustBe(t, lease.Unlock(ctx), redlock.ErrExpired)
	mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
}

// What it reads next are the answers to a renewal, sent before the suspend. They
// come too late.
func TestS19_a_renewal_that_is_answered_after_the_end_does_not_revive_the_lease(t *testing.T) {
	ms := fiveMasters(t)
	machine := &suspended{Mock: ms.clk}
	c, links := ms.client(redlock.WithClock(machine), redlock.WithNodeTimeout(10*second))
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links {
		l.set(holdReplies)
	}
	ms.pass(400 * time.Millisecond) // the renewal has run

	machine.sleep(700 * time.Millisecond)
	for _, l := range links {
		l.set(up)
	}

	mustEnd(t, lease.Context())
	mustBe(t, lease.Err(), redlock.ErrExpired)
	ms.mustBeFree("orders")
}

// suspended is the clock of a machine that can be put to sleep: no timer rings
// then, and only the wall clock goes on.
type suspended struct {
	*clock.Mock
	slept atomic.Int64
}

func (s *suspended) sleep(d time.Duration) { s.slept.Add(int64(d)) }

func (s *suspended) Now() time.Time { return s.Mock.Now().Add(time.Duration(s.slept.Load())) }

func (s *suspended) Monotonic() time.Duration { return s.Mock.Now().Sub(time.Unix(0, 0)) }

func TestExtend_after_Unlock(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	lease.Unlock(ctx)

	mustBe(t, lease.Extend(ctx, second), redlock.ErrNotHeld)
	ms.mustBeFree("orders")
}

func TestInspect_names_the_holder(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithClientID("billing-7"))
	lease := mustLock(t, c.Mutex("orders", redlock.Metadata("nightly run, step 3"), redlock.NoRenew()))
	links[4].set(down)
	ms.forget(1, "orders")
	ms.clk.Add(100 * time.Millisecond)

	h, err := c.Inspect(ctx, "orders")

	if err != nil {
		t.Fatal(err)
	}
	if !h.Held || h.Value != lease.Value() || h.Client != "billing-7" || h.Metadata != "nightly run, step 3" {
		t.Errorf("holder %+v", h)
	}
	if h.Remaining != 900*time.Millisecond {
		t.Errorf("remaining %v", h.Remaining)
	}
	if want := ms.clk.Now().Add(-100 * time.Millisecond); !h.Since.Equal(want) {
		t.Errorf("since %v, want %v", h.Since, want)
	}
	if h.Nodes[1].Value != "" || h.Nodes[4].Err == nil || h.Nodes[0].Node != "master-A" {
		t.Errorf("nodes %+v", h.Nodes)
	}
}

// A waiter asks again as long as it waits. What Inspect shows is the last time.
func TestInspect_shows_since_when_a_waiter_has_the_lock(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	c, _ := ms.client()
	got := make(chan *redlock.Lease)
	go func() {
		lease, err := c.Mutex("orders", redlock.Metadata("")).Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	ms.awaitQueued("orders", 1)
	ms.pass(3 * second)
	eventually(t, "it has just asked every master again", func() bool {
		ms.pass(second / 100)
		return !slices.ContainsFunc(ms.nodes, func(m *memory) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			q := m.queues["orders"]
			return len(q) == 0 || q[0].ends.Sub(ms.clk.Now()) < second*6/10
		})
	})
	held.Unlock(ctx)
	for _, m := range ms.nodes {
		m.deliver()
	}
	lease := <-got

	h, err := c.Inspect(ctx, "orders")

	if err != nil {
		t.Fatal(err)
	}
	if ago := ms.clk.Now().Sub(h.Since); ago < 0 || ago > second/2 || h.Metadata != "" {
		t.Errorf("since %v ago, metadata %q; want at most half a TTL, and none", ago, h.Metadata)
	}
	lease.Unlock(ctx)
}

func TestInspect_does_not_know_since_when_a_lock_without_metadata_is_held(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))

	h, err := c.Inspect(ctx, "orders")

	if err != nil || !h.Held || !h.Since.IsZero() {
		t.Errorf("%+v, %v; want a holder since no time", h, err)
	}
	lease.Unlock(ctx)
}

func TestInspect_of_a_free_lock_and_without_a_quorum(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()

	h, err := c.Inspect(ctx, "orders")
	if err != nil || h.Held {
		t.Errorf("held %v, error %v", h.Held, err)
	}

	for _, l := range links[:3] {
		l.set(down)
	}
	_, err = c.Inspect(ctx, "orders")
	mustBe(t, err, redlock.ErrNoQuorum)
}

// Its owner unlocks a lease while the answers to a renewal are on their way.
func TestL15_a_renewal_that_is_answered_after_Unlock_is_none(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, links := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders"))
	ms.forget(4, "orders") // it would be repaired
	for _, l := range links {
		l.set(holdReplies)
	}
	ms.pass(400 * time.Millisecond) // the renewal has run

	lease.Release()
	for _, l := range links {
		l.set(up)
	}

	if e := events.only(t, redlock.LeaseRenewed); e.Err == nil {
		t.Error("a lease that was unlocked was renewed")
	}
	if n := ms.nodes[4].count(wire.OpRepair); n != 0 {
		t.Errorf("put back %d times what was unlocked", n)
	}
	ms.mustBeFree("orders")
}

// Leases that were taken in one instant are not renewed in one burst.
func TestRenewals_are_spread(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	const leases = 64
	for i := range leases {
		mustLock(t, c.Mutex(fmt.Sprintf("orders-%d", i)))
	}
	renewed := func() int { return ms.nodes[0].count(wire.OpExtend) }

	most, before := 0, 0
	for range 100 {
		ms.clk.Add(5 * time.Millisecond)
		most, before = max(most, renewed()-before), renewed()
	}

	if before < leases || most > leases/2 {
		t.Errorf("%d renewals of %d leases in half a second, and %d of them within 5ms", before, leases, most)
	}
}

// A master that lost the key answers when the renewal has found no quorum. Another
// client may hold the lock by then.
func TestS19_who_answers_late_is_not_repaired_without_a_quorum(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	ms.forget(4, "orders")
	links[4].set(holdReplies)
	for _, l := range links[:3] {
		l.set(down)
	}
	ms.pass(400 * time.Millisecond) // too few masters were there for the renewal

	links[4].set(up)

	if n := ms.nodes[4].count(wire.OpRepair); n != 0 {
		t.Errorf("put back %d times what no quorum had extended", n)
	}
	for _, l := range links[:3] {
		l.set(up)
	}
	lease.Unlock(ctx)
}
