package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages rows of docs/failures.md on real servers. Each test is
// named for its row.

// 1 asks all masters, is stopped, the keys expire, 2 acquires, and 1 reads five
// OKs when it goes on.
func TestReal_S6_pause_before_the_replies_are_read(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	p := startProcess(t, addrs, second)
	var replies []*faultproxy.Hold
	for _, proxy := range proxies {
		replies = append(replies, proxy.HoldNext(faultproxy.Replies, faultproxy.Command("SET", "orders")))
	}
	p.tell("try")
	for _, r := range replies {
		arrival(t, "the answer to a SET", r.Held())
	}
	p.stop()
	for _, r := range replies {
		r.Release()
	}
	eventually(t, "the keys have expired", func() bool { return ms.free(t, "orders") })
	lease := lock(t, ms.client(t).Mutex("orders"))

	p.resume()

	if got := p.answer(); !strings.Contains(got, "expired") {
		t.Errorf("five old OKs gave %q", got)
	}
	ms.mustHold(t, lease)
}

// 1 is stopped while it holds the lock, 2 acquires, 1 goes on.
func TestReal_S7_pause_in_the_section(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	p := startProcess(t, redistest.URLs(ms), 2*second)
	if got := p.ask("try"); got != "<nil>" {
		t.Fatal(got)
	}
	p.stop()
	lease := lock(t, ms.client(t).Mutex("orders")) // after the TTL of 1

	p.tell("valid") // is what 1 asks first when it goes on
	p.tell("await the end")
	p.resume()

	if got := p.answer(); got != "false" {
		t.Errorf("the holder that was stopped says valid: %s", got)
	}
	if got := p.answer(); got != "expired" {
		t.Errorf("its context ended with %s", got)
	}
	ms.mustHold(t, lease)
}

// 1 is stopped beyond its TTL, 2 locks and unlocks, and 1 extends as if nothing
// had been.
func TestReal_S19_extending_after_somebody_else_had_the_lock(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	p := startProcess(t, redistest.URLs(ms), 2*second)
	if got := p.ask("try"); got != "<nil>" {
		t.Fatal(got)
	}
	p.stop()
	if err := lock(t, ms.client(t).Mutex("orders")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	p.tell("extend")
	p.resume()

	if got := p.answer(); !strings.Contains(got, "expired") {
		t.Errorf("extending gave %q", got)
	}
	ms.mustBeFreeSoon(t, "orders")
}

// The same while 1 believes that it holds: its keys are gone before their time.
func TestReal_S19_extending_what_a_majority_has_lost(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	lease := lock(t, ms.client(t).Mutex("orders", redlock.NoRenew(), redlock.TTL(time.Minute)))
	ms.mustHold(t, lease)
	ms[:3].doAll(t, "DEL", "orders")

	mustBe(t, lease.Extend(ctx, time.Minute), redlock.ErrLost)

	mustBe(t, context.Cause(lease.Context()), redlock.ErrLost)
	ms.mustBeFreeSoon(t, "orders")
}

// The release of a first try is held up in the network and arrives when a
// second try of the same client holds the lock. With a value of its own for
// each try it finds nothing to delete; with one value for both, the lock is
// gone and a second client gets it.
func TestReal_S20_delayed_release_of_an_earlier_try(t *testing.T) {
	for _, c := range []struct {
		name  string
		seams seam.Seams
		safe  bool
	}{
		{name: "a value for each try", safe: true},
		{name: "one value for all tries", seams: seam.Seams{Number: func() uint64 { return 0 }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3)
			addrs, proxies := ms.behindProxies(t)
			m := dial(t, addrs, seam.Option(c.seams).(redlock.Option), redlock.WithNodeTimeout(defaults.NodeTimeout)).
				Mutex("orders", redlock.NoRenew(), redlock.TTL(time.Minute))
			var releases []*faultproxy.Hold
			for _, p := range proxies {
				p.DropNext(faultproxy.Replies, faultproxy.Command("SET", "orders"))
				releases = append(releases, p.HoldNext(faultproxy.Requests, faultproxy.Command("EVALSHA", "orders")))
			}
			_, err := m.TryLock(ctx)
			mustBe(t, err, redlock.ErrNoQuorum)
			for _, r := range releases {
				arrival(t, "the release of the first try", r.Held())
			}
			// The client gives the silent connections up and delivers the
			// releases over new ones; the old ones are still on their way.
			ms.mustBeFreeSoon(t, "orders")
			var lease *redlock.Lease
			eventually(t, "the second try", func() bool {
				lease, err = m.TryLock(ctx)
				return err == nil
			})
			ms.mustHold(t, lease)

			for i, r := range releases {
				before := calls(t, ms[i], "evalsha")
				r.Release()
				eventually(t, "the old release has come", func() bool { return calls(t, ms[i], "evalsha") > before })
			}

			second, err := ms.client(t).Mutex("orders").TryLock(ctx)
			switch {
			case c.safe:
				mustBe(t, err, redlock.ErrTaken)
				ms.mustHold(t, lease)
			case err != nil || !lease.Valid() || !second.Valid():
				t.Errorf("the defect does not show: %v", err)
			}
		})
	}
}

// calls returns how often a master has run a command.
func calls(t testing.TB, s *redistest.Server, command string) (n int) {
	t.Helper()
	for line := range strings.Lines(string(do(t, s, "INFO", "commandstats").([]byte))) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d", &n); err == nil {
			return n
		}
	}
	return 0
}

func TestReal_S15_one_server_under_two_addresses(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 2)
	_, port, _ := strings.Cut(ms[0].Addr(), ":")
	twin := faultproxy.Start(t, ms[0].Addr()).Addr()
	for name, addrs := range map[string][]string{
		"by name and by number": {ms[0].Addr(), ms[1].Addr(), "localhost:" + port},
		"through a proxy":       {ms[0].Addr(), ms[1].Addr(), twin},
		"with another database": {ms[0].URL() + "/0", ms[1].URL(), "redis://" + twin + "/1"},
	} {
		_, err := tryDial(addrs, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(patience)) // Dial returns without a master that answers late
		mustBe(t, err, guard.ErrSameNode)
		mustName(t, err, []string{ms[0].Addr(), "same server as another node"})
		if name == "through a proxy" {
			mustName(t, err, []string{twin})
		}
	}
}

// A twin that comes later than Dial waits never gets a vote.
func TestReal_S15_twin_that_connects_late(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 2)
	twin := faultproxy.Start(t, ms[0].Addr())
	twin.Refuse()
	c := dial(t, []string{ms[0].Addr(), ms[1].Addr(), twin.Addr()})
	twin.Heal()
	do(t, ms[1], "SET", "orders", "somebody else") // so that every vote counts

	eventually(t, "the twin is found out", func() bool {
		_, err := c.Mutex("orders").TryLock(ctx)
		return errors.Is(err, guard.ErrSameNode)
	})

	_, err := c.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrTaken)
	mustBe(t, err, guard.ErrSameNode)
}

// The holder is cut off from every master just after a renewal. Its lease ends before any
// master would give the lock to somebody else: that is the instant, by the masters' own
// clocks, at which the first key expires. How late a timer of this machine is does not
// count here; tests with a mocked clock look at that.
func TestReal_S31_loss_is_announced_before_a_master_hands_the_lock_on(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	events := &diary{}
	c := ms.client(t, redlock.WithTTL(3*second), redlock.WithObserver(events.observe), redlock.WithNodeTimeout(defaults.NodeTimeout))
	lease := lock(t, c.Mutex("orders"))
	var ends time.Time
	eventually(t, "all masters are stopped between two renewals", func() bool {
		renewals := events.count(redlock.LeaseRenewed)
		eventually(t, "a renewal", func() bool { return events.count(redlock.LeaseRenewed) > renewals })
		renewals = events.count(redlock.LeaseRenewed)
		ends = ms.firstExpiry(t, "orders")
		for _, s := range ms {
			s.Stop()
		}
		if events.count(redlock.LeaseRenewed) == renewals {
			return true
		}
		for _, s := range ms {
			s.Continue()
		}
		return false
	})
	if lease.Err() != nil {
		t.Fatalf("lost before it was cut off: %v", lease.Err())
	}

	if until := lease.Until(); !until.Before(ends) {
		t.Errorf("the lease is valid until %v, and the first key ends at %v", until, ends)
	}

	arrival(t, "the end of the lease", lease.Done())

	t.Logf("announced %v before the first key's end", time.Until(ends))
	mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
	for _, s := range ms {
		s.Continue()
	}
	ms.mustBeFreeSoon(t, "orders")
}

// firstExpiry returns when the first of the keys expires, by its master's clock,
// which is that of this machine.
func (ms realMasters) firstExpiry(t testing.TB, key string) time.Time {
	t.Helper()
	var ends []time.Time
	eventually(t, "every master stores the key", func() bool {
		ends = nil
		for _, s := range ms {
			ends = append(ends, s.ExpiryOf(key))
		}
		return !slices.ContainsFunc(ends, time.Time.IsZero)
	})
	return slices.MinFunc(ends, time.Time.Compare)
}

// The holder is cut off while a second client waits. When that one has the
// lock, the first lease has ended.
func TestReal_S31_the_next_holder_never_meets_the_one_that_was_cut_off(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	cut := dial(t, addrs, redlock.WithDriftFactor(0.1), redlock.WithNodeTimeout(second/2))
	lease := lock(t, cut.Mutex("orders"))
	next := lockLater(t, ms.client(t).Mutex("orders"))
	lease.Context()
	for _, p := range proxies {
		p.Cut()
	}

	got := next()

	if lease.Valid() || lease.Context().Err() == nil {
		t.Errorf("the one that was cut off still believes: valid %v, context %v", lease.Valid(), lease.Context().Err())
	}
	for _, p := range proxies {
		p.Heal()
	}
	ms.mustHold(t, got)
}

// S17, S18: masters lose the key one after the other, and are refilled before
// the loss adds up to the quorum.
func TestReal_S18_FLUSHALL_of_a_minority_is_repaired(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	events := &diary{}
	c := ms.client(t, redlock.WithObserver(events.observe))
	lease := lock(t, c.Mutex("orders"))
	for i := range ms {
		ms.mustHold(t, lease)
		do(t, ms[i], "FLUSHALL")
		do(t, ms[(i+1)%5], "FLUSHALL")
	}

	ms.mustHold(t, lease)

	// The masters store the key before the client reads their answers.
	eventually(t, "ten repairs of ten losses", func() bool { return events.count(redlock.NodeRepaired) >= 10 })
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	ms.mustBeFreeSoon(t, "orders")
}

// S17: a master that was down when the lock was taken gets it when it is back.
func TestReal_S17_master_that_missed_the_acquire(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	ms[3].Kill()
	ms[4].Kill()
	lease := lock(t, ms.client(t).Mutex("orders"))

	ms[3].Restart()
	ms[4].Restart()

	ms.mustHold(t, lease)
}

// S17: it gets the lock immediately, and not with the next renewal, also if the client has never seen it.
func TestReal_S17_master_that_is_met_after_the_acquire(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	declareNew(t, redistest.URLs(ms))
	ms[3].Kill()
	ms[4].Kill()
	lease := lock(t, ms.client(t, redlock.WithTTL(time.Hour), redlock.WithRestartGuard(time.Hour)).Mutex("orders"))

	ms[3].Restart()
	ms[4].Restart()

	ms.mustHold(t, lease)
}

// L83: a master that was away with its memory kept as the lock was acquired gets it when it is back, and not
// with the next renewal. Then another one may fail.
func TestReal_L83_master_that_returns_is_given_the_lease(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(*faultproxy.Proxy){
		"refuses connections": func(p *faultproxy.Proxy) { p.Refuse(); p.Reset() },
		"hears nothing":       func(p *faultproxy.Proxy) { p.Drop(faultproxy.Requests) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3)
			addrs, proxies := ms.behindProxies(t)
			declareNew(t, redistest.URLs(ms))
			c := dial(t, addrs, redlock.WithTTL(time.Hour), redlock.WithRestartGuard(time.Hour))
			unlocks(t, lock(t, c.Mutex("before")))
			goes(proxies[2])
			lease := lock(t, c.Mutex("orders"))

			proxies[2].Heal()
			proxies[2].Reset()

			ms.mustHold(t, lease)
		})
	}
}

// S19, S24: the lease of a majority that forgot it ends at the next renewal,
// and nothing of it comes back.
func TestReal_S24_FLUSHALL_of_a_majority_is_a_loss(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(strconv.Itoa(n)+" of 5", func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5)
			lease := lock(t, ms.client(t).Mutex("orders"))
			ms.mustHold(t, lease)

			eventually(t, "the lease has ended", func() bool {
				ms[:n].doAll(t, "FLUSHALL") // once does, unless a renewal comes between the first and the last
				return lease.Err() != nil
			})

			mustBe(t, context.Cause(lease.Context()), redlock.ErrLost)
			ms.mustBeFreeSoon(t, "orders")
			mustBe(t, lease.Unlock(ctx), redlock.ErrLost)
		})
	}
}

// Extend to less ends the lease earlier; the keys end with it, or when they would have anyway (S66).
func TestReal_renewal_keeps_the_lock_and_Extend_changes_its_TTL(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	events := &diary{}
	lease := lock(t, ms.client(t, redlock.WithObserver(events.observe)).Mutex("orders"))
	first := ms.firstExpiry(t, "orders")

	eventually(t, "the keys outlive their first TTL", func() bool { return time.Now().After(first) })
	ms.mustHold(t, lease)
	if n := events.count(redlock.LeaseRenewed); n < 2 {
		t.Errorf("%d renewals", n)
	}
	for _, ttl := range []time.Duration{time.Hour, 5 * second} {
		if err := lease.Extend(ctx, ttl); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(lease.Until()); left > ttl || left < ttl-ttl/20-second {
			t.Errorf("valid for %v after Extend(%v)", left, ttl)
		}
		for _, s := range ms {
			eventually(t, "the key outlives the lease", func() bool {
				return time.Now().Add(time.Duration(do(t, s, "PTTL", "orders").(int64)) * time.Millisecond).After(lease.Until())
			})
		}
	}
}
