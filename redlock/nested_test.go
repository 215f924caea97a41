package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestV5_a_nested_lock_is_refused_and_does_not_wait_for_itself(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	lease := mustLock(t, m)

	_, err := m.Lock(lease.Context())

	mustBe(t, err, redlock.ErrNested)
	lease.Unlock(ctx)
	ms.mustBeFree("orders")
}

func TestReentrant_the_last_unlock_releases(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant())
	outer := mustLock(t, m)

	inner, err := m.Lock(outer.Context())
	if err != nil || inner != outer || outer.Holds() != 2 {
		t.Fatalf("%p, %v, %d holds; want %p with two", inner, err, outer.Holds(), outer)
	}
	if err := inner.Unlock(ctx); err != nil || !outer.Valid() || outer.Holds() != 1 {
		t.Fatalf("%v, valid %v, %d holds after the first Unlock", err, outer.Valid(), outer.Holds())
	}
	if err := outer.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	ms.mustBeFree("orders")
	if n := outer.Holds(); n != 0 {
		t.Errorf("%d holds of a lease that has ended", n)
	}
	mustBe(t, outer.Unlock(ctx), redlock.ErrNotHeld)
}

// A leader that holds its lease for weeks may run a million functions under it.
func TestReentrant_nothing_is_left_of_a_nested_Do(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant())
	lease := mustLock(t, m)
	var within context.Context

	for range 100 {
		err := redlock.Do(lease.Context(), m, func(ctx context.Context) error {
			within = ctx
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	mustBe(t, within.Err(), context.Canceled)
	if n := seam.UsageOf(c).Scopes; n != 0 || lease.Context().Err() != nil {
		t.Errorf("%d functions that have returned are kept, and the lease's context ended with %v", n, lease.Context().Err())
	}
	lease.Unlock(ctx)
}

// Whoever locks again within Do gets the lease, and its context is the lease's: it does
// not end with the caller's.
func TestReentrant_the_context_of_a_lease_within_Do_is_the_leases_own(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant())
	caller, cancel := context.WithCancel(ctx)
	defer cancel()

	err := redlock.Do(caller, m, func(ctx context.Context) error {
		lease, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		defer lease.Unlock(ctx)
		cancel()
		mustBe(t, ctx.Err(), context.Canceled)
		mustBe(t, lease.Context().Err(), nil)
		return nil
	})

	if err != nil {
		t.Error(err)
	}
}

func TestReentrant_a_context_whose_lease_has_ended_waits_like_any_other(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant())
	first := mustLock(t, m)
	within := first.Context()
	first.Unlock(ctx)

	second, err := m.TryLock(context.WithoutCancel(within))

	if err != nil || second == first {
		t.Fatalf("%p, %v; want a lease of its own", second, err)
	}
	second.Unlock(ctx)
}

// The wall clock is set forward when a holder locks again, and back. A lease that was over
// for that call stays so: if it were valid again, and renewed, the call would wait for it
// as long as it lives (simulator, seed 43974).
func TestL34_a_nested_lock_does_not_wait_for_itself_when_the_clock_is_set_back(t *testing.T) {
	ms := fiveMasters(t)
	machine := &suspended{Mock: ms.clk}
	c, _ := ms.client(redlock.WithClock(machine))
	m := c.Mutex("orders", redlock.Reentrant())
	lease := mustLock(t, m)
	within := lease.Context()
	machine.sleep(time.Hour)

	_, err := m.TryLock(within)
	machine.sleep(-time.Hour)

	mustBe(t, err, redlock.ErrExpired)
	mustEnd(t, within)
	if lease.Valid() {
		t.Error("the lease is valid again")
	}
	mustLock(t, m).Unlock(ctx)
	ms.mustBeFree("orders")
}

func TestReentrant_does_not_cross_clients_or_names(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	other, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.Reentrant()))

	_, err := other.Mutex("orders", redlock.Reentrant()).TryLock(lease.Context())
	mustBe(t, err, redlock.ErrTaken)
	elsewhere, err := c.Mutex("stock", redlock.Reentrant()).TryLock(lease.Context())
	if err != nil || elsewhere == lease {
		t.Fatalf("%v", err)
	}

	elsewhere.Unlock(ctx)
	lease.Unlock(ctx)
}

func TestReentrant_do_within_do(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant())
	depth := 0

	err := redlock.Do(ctx, m, func(within context.Context) error {
		depth++
		return redlock.Do(within, m, func(context.Context) error { depth++; return nil })
	})

	if err != nil || depth != 2 {
		t.Errorf("%v, depth %d", err, depth)
	}
	ms.mustBeFree("orders")
}

func TestReentrant_the_outer_do_hears_of_a_loss_too(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant(), redlock.NoRenew())

	err := redlock.Do(ctx, m, func(outer context.Context) error {
		if err := redlock.Do(outer, m, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		ms.pass(second)
		mustEnd(t, outer)
		return nil
	})

	mustBe(t, err, redlock.ErrExpired)
}

func TestReentrant_the_outer_do_hears_of_a_loss_while_the_inner_one_runs(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders", redlock.Reentrant(), redlock.NoRenew())

	redlock.Do(ctx, m, func(outer context.Context) error {
		return redlock.Do(outer, m, func(inner context.Context) error {
			ms.pass(second)
			mustEnd(t, inner)
			mustEnd(t, outer)
			return nil
		})
	})
}

// Functions that run under one lease return in any order. The client forgets each, and those that still
// run hear of a loss.
func TestReentrant_functions_under_one_lease_return_in_any_order(t *testing.T) {
	for first := range 3 {
		ms := fiveMasters(t)
		c, _ := ms.client()
		m := c.Mutex("orders", redlock.Reentrant(), redlock.NoRenew())
		lease := mustLock(t, m)
		begun, returned := make(chan context.Context), make(chan struct{})
		var within [3]context.Context
		var ends [3]chan struct{}
		for i := range ends {
			end := make(chan struct{})
			ends[i] = end
			go func() {
				redlock.Do(lease.Context(), m, func(ctx context.Context) error {
					begun <- ctx
					<-end
					return nil
				})
				returned <- struct{}{}
			}()
			within[i] = <-begun
		}
		mustRun := func(want int) {
			t.Helper()
			if n := seam.UsageOf(c).Scopes; n != want {
				t.Errorf("%d returned first: %d functions run, want %d", first, n, want)
			}
		}

		mustRun(3)
		close(ends[first])
		<-returned
		mustRun(2)
		ms.pass(second)
		for i := range ends {
			if i != first {
				mustEnd(t, within[i])
				close(ends[i])
				<-returned
			}
		}
		mustRun(0)
	}
}

// Another goroutine of the holder locks again while the lease is unlocked, between
// any two steps: it has either a lease that goes on, or one of its own.
func TestReentrant_a_hold_that_begins_while_the_lease_is_unlocked_lasts(t *testing.T) {
	same := 0
	for step := 0; ; step++ {
		ms := fiveMasters(t)
		steps := &seam.Steps{Stop: func() {}}
		c, _ := ms.client(seam.Option(seam.Seams{Guarded: true, Steps: steps}).(redlock.Option))
		m := c.Mutex("orders", redlock.Reentrant())
		outer := mustLock(t, m)
		within := outer.Context()
		var inner *redlock.Lease
		left, tried := step, false
		steps.Stop = func() {
			if left--; left < 0 {
				steps.Stop, tried = func() {}, true
				inner, _ = m.TryLock(context.WithoutCancel(within))
			}
		}

		err := outer.Unlock(ctx)

		if err != nil {
			t.Fatalf("at step %d: %v", step, err)
		}
		if inner == outer {
			same++
		}
		if inner != nil {
			if !inner.Valid() {
				t.Errorf("at step %d: a hold of a lease that is over: %v", step, inner.Err())
			}
			if err := inner.Unlock(ctx); err != nil {
				t.Errorf("at step %d: %v", step, err)
			}
		}
		ms.mustBeFree("orders")
		if !tried {
			break
		}
	}
	if same == 0 {
		t.Error("nobody ever locked in time to hold the same lease")
	}
}
