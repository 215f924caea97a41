package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
)

// risk is that a lease ends because it is not renewed in time.
type risk struct {
	warned bool          // of the present validity
	ch     chan struct{} // of AtRisk; nil until it is called
}

// AtRisk returns a channel that delivers when half of the validity has passed without a
// renewal: too few masters have answered. The lease is still held, and may still be renewed.
// After a renewal the channel may deliver again. It keeps one warning for a late receiver. It
// is never closed, and delivers nothing for a lease that is not to be renewed: with NoRenew, or
// when MaxHold is about to end it. Every call returns the same channel.
func (l *Lease) AtRisk() <-chan struct{} {
	if l.of != nil {
		return l.of.AtRisk()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.risk.ch == nil {
		l.risk.ch = make(chan struct{}, 1)
		if l.risk.warned {
			l.risk.ch <- struct{}{}
		}
		if l.cause == nil {
			l.setTimer(l.now())
		}
	}
	return l.risk.ch
}

// riskAt is when to warn that the lease was not renewed yet, from since; zero: do not. The
// mutex is held.
func (l *Lease) riskAt() time.Duration {
	wanted := l.lock.observed() || l.risk.ch != nil
	if !wanted || !l.renewed() || l.risk.warned {
		return 0
	}
	return l.half()
}

// renewed reports whether the lease is to be renewed: not with NoRenew, nor when MaxHold is about to
// end it. The mutex is held.
func (l *Lease) renewed() bool {
	return !l.lock.opt.noRenew && (l.renewAt > 0 || l.renewal != nil)
}

// half is when half of the validity has passed, from since. The mutex is held.
func (v *validity) half() time.Duration { return v.budget / 2 }

// risky reports whether it is time to warn, once for each validity, and has AtRisk deliver.
// The mutex is held.
func (l *Lease) risky(now drift.Instant) bool {
	at := l.riskAt()
	if at == 0 || now.Sub(l.since) < at {
		return false
	}
	l.risk.warned = true
	if l.risk.ch != nil && len(l.risk.ch) == 0 { // only we send, under the mutex
		l.risk.ch <- struct{}{}
	}
	return true
}

// warn tells the observer if the lease is at risk.
func (l *Lease) warn(risk bool) {
	if risk {
		l.observe(Event{Kind: LeaseAtRisk})
	}
}
