package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// Every master is slow, and no quorum of them answers within the node timeout.
// They do what they are told all the same, and say so in good time.
func TestL22_late_extensions_count_as_long_as_the_old_validity_stands(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(3 * second))
	lease := mustLock(t, c.Mutex("orders"))
	for i, l := range links {
		l.lag(time.Duration(40+20*i) * time.Millisecond)
	}

	ms.pass(30 * second)

	if !lease.Valid() {
		t.Fatalf("not valid: %v", lease.Err())
	}
	if n := ms.nodes[0].count(wire.OpExtend); n < 25 || n > 35 {
		t.Errorf("%d renewals in ten TTLs", n)
	}
	for _, l := range links {
		l.lag(0)
	}
	lease.Unlock(ctx)
	ms.mustBeFree("orders")
}

func TestL22_an_extension_that_comes_after_the_end_is_none(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links {
		l.lag(900 * time.Millisecond)
	}

	ms.pass(5 * second)

	mustBe(t, lease.Err(), redlock.ErrExpired)
	ms.mustBeFree("orders")
}

// A renewal that was asked is not asked again before it was answered.
func TestL22_a_slow_master_is_not_asked_again(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links {
		l.set(holdReplies)
	}
	ms.pass(900 * time.Millisecond)

	if n := ms.nodes[0].count(wire.OpExtend); n != 1 {
		t.Errorf("asked %d times to extend", n)
	}
	for _, l := range links {
		l.set(up)
	}
	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

// Masters that refuse are asked again, less and less of what is left apart: the
// longer the lease still stands, the less there is to be gained by haste.
func TestL22_renewals_that_fail_are_spread_over_what_is_left(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(10*second), redlock.WithRestartGuard(10*second))
	lease := mustLock(t, c.Mutex("orders"))
	var tried []time.Time
	links[0].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpExtend {
			tried = append(tried, ms.clk.Now())
		}
	}
	for _, l := range links {
		l.set(down)
	}
	until := lease.Until()

	ms.pass(10 * second)

	for i, at := range tried[:len(tried)-1] {
		pause, left := tried[i+1].Sub(at), until.Sub(at)
		if shortest := min(left/8, left) - 30*time.Millisecond; pause < shortest {
			t.Errorf("asked again after %v with %v left", pause, left)
		}
	}
	if last := until.Sub(tried[len(tried)-1]); last > 500*time.Millisecond {
		t.Errorf("given up %v before the end", last)
	}
	if len(tried) > 40 {
		t.Errorf("tried %d times", len(tried))
	}
}

// The holder is alive and stuck: it renews, and nobody else gets the lock.
func TestL6_MaxHold_ends_the_lease_of_a_holder_that_is_stuck(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	start := ms.clk.Now()
	lease := mustLock(t, c.Mutex("orders", redlock.MaxHold(3500*time.Millisecond)))

	ms.pass(3400 * time.Millisecond)
	if !lease.Valid() {
		t.Fatalf("not valid after %v: %v", ms.clk.Since(start), lease.Err())
	}
	ms.pass(100 * time.Millisecond)

	mustEnd(t, lease.Context())
	mustBe(t, lease.Err(), redlock.ErrExpired)
	ms.mustBeFree("orders")
	if n := ms.nodes[0].count(wire.OpExtend); n > 11 {
		t.Errorf("%d renewals in 3.5 TTLs", n)
	}
}

func TestL6_MaxHold_is_kept_by_the_masters_too(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	mustLock(t, c.Mutex("orders", redlock.MaxHold(2500*time.Millisecond)))
	ms.pass(2400 * time.Millisecond)
	for _, l := range links {
		l.set(down) // so that nothing is deleted
	}

	ms.pass(second) // for the rest, and for commands that were late

	ms.mustBeFree("orders")
}

func TestL6_extend_asks_for_no_more_than_MaxHold_allows(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.MaxHold(2*second)))
	ms.pass(500 * time.Millisecond)

	if err := lease.Extend(ctx, 30*second); err != nil {
		t.Fatal(err)
	}
	if left := lease.Until().Sub(ms.clk.Now()); left != 1463*time.Millisecond {
		t.Errorf("%v left, want what MaxHold leaves, less drift", left)
	}
	ms.pass(1500 * time.Millisecond)

	mustBe(t, lease.Extend(ctx, 30*second), redlock.ErrExpired)
	ms.mustBeFree("orders")
}

// What is left is too short for a TTL. The lease goes on to its end.
func TestL6_extend_at_the_end_of_MaxHold_changes_nothing(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client(redlock.WithClockGuard(0))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(10*time.Millisecond), redlock.MaxHold(20*time.Millisecond)))
	ms.pass(5 * time.Millisecond)
	if err := lease.Extend(ctx, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ms.pass(6 * time.Millisecond)
	until := lease.Until()

	err := lease.Extend(ctx, 10*time.Millisecond)

	if err != nil || !lease.Valid() || !lease.Until().Equal(until) {
		t.Errorf("%v, valid until %v, want until %v", err, lease.Until(), until)
	}
}

// The next try of a renewal that found no master is planned for later. A quorum is
// connected again meanwhile: the leases are renewed then.
func TestL45_a_lease_is_renewed_when_its_masters_are_connected_again(t *testing.T) {
	for what, passes := range map[string]struct{ before, down time.Duration }{
		"a new lease":                       {0, 1100 * time.Millisecond},
		"a renewal showed all have the key": {150 * time.Millisecond, 1200 * time.Millisecond},
	} {
		ms := fiveMasters(t)
		c, links := ms.client(redlock.WithTTL(2 * second))
		lease := mustLock(t, c.Mutex("orders"))
		ms.pass(passes.before)
		for _, l := range links {
			l.set(down)
		}
		ms.pass(passes.down)
		until := lease.Until()

		for _, l := range links[:3] {
			l.set(up)
			l.returns()
		}
		ms.pass(5 * time.Millisecond)

		eventually(t, what+" is renewed", func() bool { return lease.Until().After(until) })
	}
}

// A lease that was renewed in time is not renewed because some master is connected again.
func TestL45_a_lease_that_was_renewed_is_not_renewed_for_a_master_that_returns(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(2 * second))
	mustLock(t, c.Mutex("orders"))
	ms.pass(150 * time.Millisecond) // the first renewal has shown that all masters have the key
	links[0].set(down)
	ms.pass(100 * time.Millisecond)

	links[0].set(up)
	links[0].returns()
	ms.pass(100 * time.Millisecond)

	if n := ms.nodes[1].count(wire.OpExtend); n != 1 {
		t.Errorf("%d renewals, want 1", n)
	}
}

// L83: a bare majority has granted a lease, because the other masters had the lock for an attempt
// that came to nothing. The next failure does not end the lease.
func TestL83_a_new_lease_has_soon_the_key_at_all_masters(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	other, _ := ms.client()
	lost := mustLock(t, other.Mutex("orders", redlock.NoRenew()))
	for i := range 3 {
		ms.forget(i, "orders")
	}
	lease := mustLock(t, c.Mutex("orders"))
	lost.Release()

	ms.pass(second / 16)

	for i, got := range ms.holders("orders") {
		if got != lease.Value() {
			t.Errorf("master %d stores %q", i, got)
		}
	}
	links[0].set(down)
	ms.pass(3 * second)
	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

// L83: two masters were away when the lease was acquired and at its first renewal. They get the key when
// they are connected again, and not only with the next renewal.
func TestL83_a_master_that_returns_is_given_the_keys_that_it_lacks(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(100 * second))
	links[3].set(down)
	links[4].set(down)
	lease := mustLock(t, c.Mutex("orders"))
	ms.pass(7 * second)

	links[3].set(up)
	links[3].returns()
	ms.pass(second / 10)

	if got := ms.holders("orders"); got[3] != lease.Value() {
		t.Errorf("the masters store %q", got)
	}
	if n := ms.nodes[0].count(wire.OpExtend); n != 2 {
		t.Errorf("%d renewals, want 2", n)
	}
}

// L83: a master that comes and goes, and grants nothing, does not have all leases renewed each time.
func TestL83_a_master_that_comes_and_goes_costs_one_renewal_more(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(100 * second))
	mustLock(t, c.Mutex("orders"))
	links[4].set(down)
	ms.pass(7 * second)
	for range 20 {
		links[4].returns()
		ms.pass(second / 10)
	}

	if n := ms.nodes[0].count(wire.OpExtend); n != 2 {
		t.Errorf("%d renewals, want 2", n)
	}
}

// L83: who extends a lease late has its key.
func TestL83_a_master_that_was_late_lacks_nothing(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(100 * second))
	mustLock(t, c.Mutex("orders"))
	links[4].set(holdReplies)
	ms.pass(7 * second)
	links[4].set(up)

	links[4].returns()
	ms.pass(second / 10)

	if n := ms.nodes[0].count(wire.OpExtend); n != 1 {
		t.Errorf("%d renewals, want 1", n)
	}
}

// Two masters restart in the same instant. The renewal that the first one's loss leads to
// cannot ask the second, which is not connected yet, and is still under way when that is.
func TestS18b_a_master_that_forgets_during_a_renewal_is_given_the_key_soon(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithTTL(10 * second))
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links[:3] {
		l.set(holdReplies)
	}
	for i, l := range links[3:] {
		ms.forget(3+i, "orders")
		l.set(down)
	}
	links[3].set(up)
	links[3].forgets()
	ms.pass(10 * second / 8)
	links[4].set(up)
	links[4].forgets()
	for _, l := range links[:3] {
		l.set(up)
	}

	ms.pass(10 * second / 8)

	if got := ms.holders("orders"); got[3] != lease.Value() || got[4] != lease.Value() {
		t.Errorf("an eighth of the TTL after its renewal the masters store %q", got)
	}
	if n := ms.nodes[0].count(wire.OpExtend); n != 2 {
		t.Errorf("%d renewals, want one for each loss", n)
	}
}

// An extension is held up on a connection that breaks, and arrives after a later one for more.
// It must not end the keys before the validity.
func TestS66_a_late_extension_takes_back_no_longer_one(t *testing.T) {
	for name, first := range map[string]time.Duration{"for less": second / 5, "for as much": second} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, links := ms.client(redlock.WithRestartGuard(time.Minute))
			other, _ := ms.client(redlock.WithRestartGuard(time.Minute))
			lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(second)))
			arrive := lateExtension(t, lease, first, links)

			if err := lease.Extend(ctx, 3*second); err != nil {
				t.Fatal(err)
			}
			ms.pass(second / 10)
			arrive()
			ms.pass(second + second/10)

			if _, err := other.Mutex("orders").TryLock(ctx); err == nil && lease.Valid() {
				t.Errorf("two clients hold the lock, the first one for another %v", lease.Until().Sub(ms.clk.Now()))
			}
		})
	}
}

// The same for a master that was not waited for: its connection breaks when a quorum has
// answered.
func TestS66_a_late_extension_that_was_not_waited_for_takes_back_no_longer_one(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew(), redlock.TTL(second)))
	links[0].set(hung)
	if err := lease.Extend(ctx, second/5); err != nil {
		t.Fatal(err)
	}
	arrive := links[0].breaks()

	if err := lease.Extend(ctx, 3*second); err != nil {
		t.Fatal(err)
	}
	arrive()

	for i := range ms.nodes {
		if ends := ms.nodes[i].keys["orders"].ends; ends.Before(lease.Until()) {
			t.Errorf("master %d lets the key end %v before the lease", i, lease.Until().Sub(ends))
		}
	}
}

func TestExtend_whose_context_ends_says_so_and_the_answers_still_count(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithRestartGuard(time.Minute))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	setAll(links, hung)
	within, cancel := context.WithCancel(ctx)
	extended := make(chan error, 1)
	go func() { extended <- lease.Extend(within, 10*second) }()
	eventually(t, "the masters are asked", func() bool { return links[4].hangs() == 1 })

	cancel()

	mustBe(t, arrival(t, "the error", extended), context.Canceled)
	mustBe(t, lease.Extend(within, 10*second), context.Canceled) // it waits for the other one
	setAll(links, up)
	if left := lease.Remaining(); left < 9*second {
		t.Errorf("%v remain, want 10 s", left)
	}
	lease.Unlock(ctx)
}

func TestS18_a_repair_that_failed_is_reported_with_its_error(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, links := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	ms.forget(0, "orders")
	ms.forget(1, "orders")
	links[1].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRepair {
			links[1].set(down)
		}
	}

	if err := lease.Extend(ctx, second); err != nil {
		t.Fatal(err)
	}

	got := map[string]error{}
	for _, e := range events.ofKind(redlock.NodeRepaired) {
		got[e.Node] = e.Err
	}
	if len(got) != 2 || got["master-A"] != nil || !errors.Is(got["master-B"], node.ErrDown) {
		t.Errorf("told of %v, want nil and %v", got, node.ErrDown)
	}
	lease.Unlock(ctx)
}

// lateExtension has a lease extended through connections that break. arrive has the masters
// run what was held up.
func lateExtension(t *testing.T, lease *redlock.Lease, ttl time.Duration, links []*link) (arrive func()) {
	t.Helper()
	late := links[:3]
	for _, l := range late {
		l.set(hung)
	}
	result := make(chan error, 1)
	go func() { result <- lease.Extend(ctx, ttl) }()
	eventually(t, "three masters are asked", func() bool {
		return late[0].hangs() == 1 && late[1].hangs() == 1 && late[2].hangs() == 1
	})
	var all []func()
	for _, l := range late {
		all = append(all, l.breaks())
	}
	mustBe(t, <-result, redlock.ErrNoQuorum)
	return func() {
		for _, f := range all {
			f()
		}
	}
}

// Options that leave little of the TTL leave time for a renewal, and for another one if that fails.
func TestL87_a_lease_renews_itself_whatever_the_options_say_of_drift_and_grace(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, with := range []struct {
		ttl   time.Duration
		drift float64
		grace time.Duration
	}{
		{250 * ms, 0.1, 0}, {300 * ms, 0.1, 0}, {second, 0.3, 0},
		{1500 * ms, 0.4, 0}, {2 * second, 0.5, 0}, {300 * ms, 0.01, 120 * ms}, {300 * ms, 0, 0},
	} {
		masters := fiveMasters(t)
		c, _ := masters.client(redlock.WithTTL(with.ttl), redlock.WithDriftFactor(with.drift), redlock.WithRestartGuard(0))
		var opts []redlock.MutexOption
		if with.grace > 0 {
			opts = append(opts, redlock.StopWithin(with.grace, func(error) {}))
		}
		lease := mustLock(t, c.Mutex("orders", opts...))
		risk := lease.AtRisk()

		masters.pass(4 * with.ttl)

		if err := lease.Err(); err != nil {
			t.Errorf("TTL %v, drift factor %v, grace %v: %v", with.ttl, with.drift, with.grace, err)
		}
		select {
		case <-risk:
			t.Errorf("TTL %v, drift factor %v, grace %v: at risk", with.ttl, with.drift, with.grace)
		default:
		}
		if n := masters.nodes[0].count(wire.OpExtend); n < 11 {
			t.Errorf("TTL %v, drift factor %v, grace %v: %d renewals in four TTLs", with.ttl, with.drift, with.grace, n)
		}
		lease.Unlock(ctx)
	}
}
