package redlock

import "time"

// renewSoon renews every lease soon, because a node has forgotten them. With each key
// that is put back the next failure costs less, and other clients need not rely on the
// node's quarantine alone (S5b).
func (c *Client) renewSoon() {
	c.mu.Lock()
	var leases []*Lease
	for l := c.held; l != nil; l = l.before {
		leases = append(leases, l)
	}
	c.mu.Unlock()
	spread := time.Duration(len(leases)) * betweenRenewals
	for _, l := range leases {
		l.renewWithin(min(spread, l.ttlNow()/8))
	}
}

// betweenRenewals spreads renewals that are due at once: ten thousand over a
// second.
const betweenRenewals = 100 * time.Microsecond

func (l *Lease) ttlNow() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl
}

// renewWithin plans the next renewal within d, unless the lease is not renewed at all,
// or a renewal is under way.
func (l *Lease) renewWithin(d time.Duration) {
	wait := l.lock.client.jitter(d)
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil || l.renewAt == 0 || l.renewal != nil {
		return
	}
	l.renewAt = min(l.renewAt, now.Sub(l.since)+wait)
	l.setTimer(now)
}
