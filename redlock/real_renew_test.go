package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// All five masters answer 40 to 120 ms late, most of them after the node timeout
// of 50 ms, and a lease of 3 s is kept.
func TestReal_L22_late_renewals_count(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	c := dial(t, addrs, redlock.WithTTL(3*second), redlock.WithNodeTimeout(defaults.NodeTimeout))
	lease := lock(t, c.Mutex("orders"))
	first := ms.firstExpiry(t, "orders")

	for i, p := range proxies {
		p.Delay(faultproxy.Replies, time.Duration(40+20*i)*time.Millisecond)
	}

	eventually(t, "the lease outlives its first TTL twice", func() bool {
		return !lease.Valid() || time.Now().After(first.Add(3*second))
	})
	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}
