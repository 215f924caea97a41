package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// delivers reports whether a channel has something to receive, and receives it.
func delivers(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestAtRisk_delivers_once_for_each_validity_that_was_not_renewed_in_time(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	set := func(state linkState) {
		for _, l := range links[:3] {
			l.set(state)
		}
	}
	risk := lease.AtRisk()
	for range 2 {
		ms.pass(second)
		if delivers(risk) {
			t.Error("at risk although it is renewed")
		}
		set(holdReplies)
		ms.pass(second * 55 / 100)
		if !delivers(risk) || !lease.Valid() {
			t.Fatalf("not at risk: %v", lease)
		}
		set(up)
		ms.pass(second / 2)
		delivers(risk) // the renewal was granted late, and its half of the validity has passed, too
	}
	for range 2 { // nobody receives
		ms.pass(second)
		set(holdReplies)
		ms.pass(second * 55 / 100)
		set(up)
	}
	ms.pass(second)
	if !delivers(risk) || delivers(risk) {
		t.Error("two warnings that nobody received are not one")
	}
	lease.Unlock(ctx)
}

func TestAtRisk_of_a_lease_that_is_at_risk_already(t *testing.T) {
	for _, observed := range []bool{false, true} {
		ms := fiveMasters(t)
		var opts []redlock.Option
		if observed {
			opts = append(opts, redlock.WithObserver(func(redlock.Event) {}))
		}
		c, links := ms.client(opts...)
		lease := mustLock(t, c.Mutex("orders"))
		for _, l := range links[:3] {
			l.set(holdReplies)
		}
		ms.pass(second * 7 / 10)

		risk := lease.AtRisk()
		ms.pass(10 * time.Millisecond)

		if !delivers(risk) {
			t.Errorf("observed %v: delivers nothing", observed)
		}
		if lease.AtRisk() != risk {
			t.Error("another channel")
		}
		for _, l := range links[:3] {
			l.set(up)
		}
	}
}

func TestAtRisk_of_a_lease_that_nobody_renews_delivers_nothing(t *testing.T) {
	for name, opt := range map[string]redlock.MutexOption{"NoRenew": redlock.NoRenew(), "MaxHold": redlock.MaxHold(1500 * time.Millisecond)} {
		ms := fiveMasters(t)
		c, _ := ms.client()
		lease := mustLock(t, c.Mutex("orders", opt))
		risk := lease.AtRisk()
		ms.pass(2 * second)
		if delivers(risk) {
			t.Errorf("%s: delivers", name)
		}
		if lease.Remaining() != 0 {
			t.Errorf("%s: %v remain of a lease that has ended", name, lease.Remaining())
		}
	}
}

func TestRemaining_is_what_is_left_of_the_validity(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	before := lease.Remaining()
	ms.pass(300 * time.Millisecond)
	if passed := before - lease.Remaining(); passed != 300*time.Millisecond {
		t.Errorf("%v less after 300 ms", passed)
	}
	lease.Unlock(ctx)
	if left := lease.Remaining(); left != 0 {
		t.Errorf("%v after Unlock", left)
	}
}
