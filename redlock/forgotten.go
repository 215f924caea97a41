package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/quorum"
)

// renew renews all leases soon, or those that need node i; see node.Renewing. It ends the rest of the
// client: what the other masters store about the clock of node i may refer to an earlier run of its
// server, and perhaps there is no other client to write it anew.
func (c *Client) renew(i int, all bool) {
	c.stir()
	if all {
		c.renewSoon()
	} else {
		c.renewAt(i)
	}
}

// renewSoon renews every lease soon, because a node has forgotten them. With each key
// that is put back the next failure costs less, and other clients need not rely on the
// node's quarantine alone (S5b).
func (c *Client) renewSoon() { renewAll(c.leases()) }

// renewAll renews leases soon, one after the other.
func renewAll(leases []*Lease) {
	spread := time.Duration(len(leases)) * betweenRenewals
	for _, l := range leases {
		l.renewWithin(min(spread, l.budgetNow()/8))
	}
}

// renewAt renews the leases that node i may lack, because it is connected again: until then another
// failure may end them (L83). It also renews those that could not be renewed in time: the next try may
// be planned for when their validity has ended (L45).
func (c *Client) renewAt(i int) {
	spread := time.Duration(0)
	for _, l := range c.leases() {
		if left := l.due(i); left > 0 {
			spread += betweenRenewals
			l.renewWithin(min(spread, left/4))
		}
	}
}

// due returns how much validity is left of a lease whose key node i may lack, or that should have been
// renewed before; zero: neither. One renewal for node i is enough, until a planned one finds it lacking.
func (l *Lease) due(i int) (left time.Duration) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lacks.Has(i) || now.Sub(l.since) > l.pace(l.budget/4+l.budget/8) { // see planRenewal
		left = max(0, l.left(now))
	}
	l.lacks &^= quorum.Only(i)
	return left
}

// leases returns the leases that are held.
func (c *Client) leases() (all []*Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := c.held.last; l != nil; l = l.before {
		all = append(all, l)
	}
	return all
}

// betweenRenewals spreads renewals that are due together: ten thousand over a
// second.
const betweenRenewals = 100 * time.Microsecond

func (l *Lease) ttlNow() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl
}

func (l *Lease) budgetNow() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget
}

// renewWithin plans the next renewal within d, unless the lease is not renewed at all. A
// renewal that is under way may have missed the master that this is about, so another
// follows it. The timer is set anew in any case: if our own clock has turned out to be slow,
// the lease ends earlier than it seemed.
func (l *Lease) renewWithin(d time.Duration) {
	wait := l.lock.client.jitter(d)
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cause != nil:
		l.setStop(now)
		return
	case l.renewal != nil:
		l.renewal.follow(wait)
	default:
		l.renewSooner(now, wait)
	}
	l.setTimer(now)
}

// renewSooner brings the next renewal forward, if there is one. The mutex is held.
func (l *Lease) renewSooner(now drift.Instant, wait time.Duration) {
	if l.renewAt > 0 {
		l.renewAt = min(l.renewAt, now.Sub(l.since)+max(wait, 1)) // zero means never
	}
}

// follow has another renewal follow this one within wait of its success. If it finds no quorum,
// retryPause counts instead.
func (x *renewal) follow(wait time.Duration) {
	if wait = max(wait, 1); x.next == 0 || wait < x.next {
		x.next = wait
	}
}
