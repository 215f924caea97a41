package redlock_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// Masters at different distances. What is far away is an answer that a proxy
// holds back: it is on its way for as long as the test wants.

// holdBack keeps back the next thing about a lock in a direction at each proxy.
func holdBack(proxies []*faultproxy.Proxy, dir faultproxy.Direction, name string) (holds []*faultproxy.Hold) {
	for _, p := range proxies {
		holds = append(holds, p.HoldNext(dir, faultproxy.Command("", name)))
	}
	return holds
}

func arrive(t testing.TB, holds ...*faultproxy.Hold) {
	t.Helper()
	for _, h := range holds {
		arrival(t, "what is far away is on its way", h.Held())
	}
}

func release(holds ...*faultproxy.Hold) {
	for _, h := range holds {
		h.Release()
	}
}

// Two masters are near, one is farther away and two are farther still: the third
// nearest decides, for the lock and for its release.
func TestReal_distance_a_pair_costs_the_third_nearest(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	m := dial(t, addrs).Mutex("orders")

	// Given the answers of the three that are not near are on their way,
	third, far := holdBack(proxies[2:3], faultproxy.Replies, "orders"), holdBack(proxies[3:], faultproxy.Replies, "orders")
	next := lockLater(t, m)
	arrive(t, append(third, far...)...)
	// when the third answers, and the others have not,
	again := holdBack(proxies[2:3], faultproxy.Replies, "orders")
	release(third...)
	lease := next()
	// then the lock is held, and the same goes for its release.
	unlocked := make(chan error, 1)
	go func() { unlocked <- lease.Unlock(ctx) }()
	arrive(t, again...)
	select {
	case err := <-unlocked:
		t.Errorf("unlocked by two of five: %v", err)
	default:
	}
	release(again...)
	if err := arrival(t, "the lock is released", unlocked); err != nil {
		t.Error(err)
	}
	release(far...)
	ms.mustBeFreeSoon(t, "orders")
}

// What far masters granted after the lock was held is not given back: it is
// what the lock lives on when near masters fail.
func TestReal_distance_late_grants_are_kept(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	m := dial(t, addrs, redlock.WithTTL(time.Minute)).Mutex("orders")

	// Given a lock that three near masters have granted while the requests to two
	// far ones were on their way,
	far := holdBack(proxies[3:], faultproxy.Requests, "orders")
	lease := lock(t, m)
	arrive(t, far...)
	if v := ms.values(t, "orders"); v[3] != "" || v[4] != "" {
		t.Fatalf("the far masters store %q already", v[3:])
	}
	// when they arrive, then all five have it,
	release(far...)
	ms.mustHold(t, lease)
	// and two near masters can go.
	ms[0].Kill()
	ms[1].Kill()
	if err := lease.Extend(ctx, time.Minute); err != nil {
		t.Errorf("one near master and two far ones: %v", err)
	}
}

// A far master that has lost the key says so when the renewal is long decided.
// It is given the key back all the same, and that is counted.
func TestReal_S18_distance_late_answers_are_repaired(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	events := &diary{}
	lease := lock(t, dial(t, addrs, redlock.WithTTL(time.Minute), redlock.WithObserver(events.observe)).Mutex("orders", redlock.NoRenew()))
	ms.mustHold(t, lease)

	// Given two far masters without the key, whose answers are on their way,
	for _, s := range ms[3:] {
		do(t, s, "DEL", "orders")
	}
	far := holdBack(proxies[3:], faultproxy.Replies, "orders")
	if err := lease.Extend(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	arrive(t, far...)
	if n := events.count(redlock.NodeRepaired); n != 0 {
		t.Errorf("%d masters repaired before they said anything", n)
	}
	// when they arrive, then both are repaired.
	release(far...)
	ms.mustHold(t, lease)
	eventually(t, "both repairs are reported", func() bool { return events.count(redlock.NodeRepaired) == 2 })
}

// A master that is farther away than votes are waited for is reported by Dial,
// with what to do about it; the others go on without it.
func TestReal_distance_beyond_the_node_timeout_is_reported(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	addrs, proxies := ms.behindProxies(t)
	proxies[2].Delay(faultproxy.Replies, 300*time.Millisecond) // a handshake takes four of these, and has 2 s
	log := &diary{}
	c := dial(t, addrs, redlock.WithNodeTimeout(250*time.Millisecond), redlock.WithLogger(slog.New(log)))
	err := redlock.Do(ctx, c.Mutex("orders"), func(context.Context) error { return nil })
	if err != nil {
		t.Error(err)
	}
	eventually(t, "the far master is reported", func() bool {
		return log.said("WARN", addrs[2], "it will never vote", "node_timeout=250ms", "WithNodeTimeout(")
	})
}
