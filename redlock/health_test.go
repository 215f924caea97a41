package redlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A lease that nobody renews, by its owner's will, is no trouble.
func TestHealthy_a_lease_that_is_to_end_is_not_at_risk(t *testing.T) {
	for name, opt := range map[string]redlock.MutexOption{
		"NoRenew": redlock.NoRenew(),
		"MaxHold": redlock.MaxHold(1500 * time.Millisecond),
	} {
		ms := fiveMasters(t)
		c, _ := ms.client()
		lease := mustLock(t, c.Mutex("orders", opt))
		for lease.Valid() {
			ms.pass(50 * time.Millisecond)
			if err := c.Healthy(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestHealthy_says_for_how_long_a_lease_was_not_renewed_and_how_long_it_is_held(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	setAll(links, down)

	ms.pass(600 * time.Millisecond)

	mustName(t, c.Healthy(), []string{`lock "orders" was not renewed for 600ms, and is held for another 368ms`})
	setAll(links, up)
	lease.Unlock(ctx)
}

// The client has it only until its work has ended.
func TestHealthy_a_lease_that_has_ended_is_at_risk_no_more(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	var s stops
	lease := mustLock(t, c.Mutex("orders", redlock.StopWithin(grace, s.stop)))
	setAll(links, down)
	ms.pass(whole - grace)
	mustEnd(t, lease.Context())

	if err := c.Healthy(); err != nil {
		t.Error(err)
	}

	setAll(links, up)
	lease.Unlock(ctx)
	s.mustNotCome(t)
}

// L35: callers that no quorum of masters can notify poll, which is slow and costs commands.
func TestHealthy_says_that_nobody_can_notify_the_waiters(t *testing.T) {
	mock := clock.NewMock()
	var c *redlock.Client
	masters, _ := scriptedClient(t, func(ctx context.Context, client *redlock.Client) (*redlock.Lease, error) {
		c = client
		return c.Mutex("orders").Lock(ctx)
	}, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second), redlock.WithTTL(60*second))
	mute(masters, true)
	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(wire.Reply{}) // taken
	}
	for _, m := range masters {
		m.next(t, wire.OpAsk).answer(stillQueued)
	}
	if err := c.Healthy(); err != nil {
		t.Errorf("before it is certain: %v", err)
	}

	pollsAnew(t, masters, mock)

	if err := c.Healthy(); err == nil || !strings.Contains(err.Error(), "can notify") {
		t.Errorf("healthy: %v", err)
	}
}
