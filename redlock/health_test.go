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
