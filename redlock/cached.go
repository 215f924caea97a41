package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Cached keeps the lock in this process after Unlock, until another process waits for it. The
// next Lock of this client then asks no master, and callers of this client pass the lock to each
// other, in the order of their arrival. All their handles must be Cached. Each Lock still returns a
// lease of its own, which ends with its Unlock; only Lease.Value is the same.
//
// If another process waits, it is served as soon as the lock is not in use: the masters tell this
// client, and tell it again with each renewal. Callers of this client that wait already may have the
// lock before, 16 of them at most, and none after 10ms. A TryLock of another process waits for a
// node timeout for that, if its handle is Cached, too. Clients that do not queue for the lock, as
// those of other libraries, are refused until it has not been used for as long as idle says: by
// default, the TTL.
//
// A process that stops without Close leaves the lock to its TTL, as one that holds it. Cached does
// not go with Fenced, because a token belongs to one Lock, nor with AtLeast, Fair, MaxHold, NoRenew,
// Polling and StopWithin. Lease.Extend, AtRisk and Requested are about the lock as long as this
// process has it.
func Cached(idle ...time.Duration) MutexOption {
	return cachedOption{change: func(o *lockOptions) {
		o.cached = new(time.Duration)
		switch {
		case len(idle) == 1 && idle[0] > 0:
			*o.cached = idle[0]
		case len(idle) > 0:
			o.err = fmt.Errorf("Cached(%v): must be one duration above zero, or none", idle)
		}
	}}
}

// cachedOption fits a Mutex alone: only a string key of its own tells that it is cached.
type cachedOption struct {
	change
	fitsMutex
}

// checkCached refuses options that do not go with Cached.
func (lo *lockOptions) checkCached() error {
	if lo.cached == nil {
		return nil
	}
	for _, with := range []struct {
		name  string
		given bool
	}{
		{"Fenced", lo.fenced}, {"AtLeast", lo.atLeast != nil}, {"Fair", lo.fair}, {"MaxHold", lo.maxHold != forever},
		{"NoRenew", lo.noRenew}, {"Polling", lo.poll != nil}, {"StopWithin", lo.stop != nil},
	} {
		if with.given {
			return fmt.Errorf("redlock: Cached with %s: must not be combined", with.name)
		}
	}
	return nil
}

const (
	// mostPassed and longestPassing bound for how long a lock is passed within the process while
	// another one waits.
	mostPassed     = 16
	longestPassing = 10 * time.Millisecond
)

// tenure is what a client knows of one Cached lock, whether it has the lock or not. The masters
// store one lease. Each Lock gets a section of that lease, one at a time.
//
// Invariant: if callers are in line, one caller uses the lock or asks the masters for it.
type tenure struct {
	client *Client
	id     string
	idle   time.Duration

	mu     seam.Mutex
	lease  *Lease     // that the masters store; nil: this process does not have the lock
	used   *Lease     // the section that has it; nil: none
	asking bool       // a caller asks the masters for it
	line   []*insider // callers that wait, in the order of their arrival
	wanted *demand    // nil: no other process is known to wait
	early  string     // another process waits for the lease with this id: heard before ask had stored the lease
	rested drift.Instant
	timer  drift.Timer
	timed  bool // the timer is set
}

// demand is that another process waits.
type demand struct {
	since  drift.Instant
	passed int // how often the lock was passed within this process meanwhile
}

// insider is a caller that waits for another one of the same process.
type insider struct {
	ctx   context.Context
	lock  *lock
	ready chan struct{}
	lease *Lease // its section; nil: it must ask the masters
}

// tenures are the Cached locks of a client, by the id of their kind.
type tenures struct {
	mu     seam.Mutex
	byLock map[string]*tenure
}

// of returns the tenure of a lock, locked: the caller unlocks it.
func (ts *tenures) of(l *lock) *tenure {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byLock[l.kind.id]
	if t == nil {
		t = &tenure{client: l.client, id: l.kind.id, idle: *l.opt.cached}
		if t.idle == 0 {
			t.idle = l.opt.ttl
		}
		t.mu.In(l.client.seams.Steps)
		if ts.byLock == nil {
			ts.byLock = map[string]*tenure{}
		}
		ts.byLock[t.id] = t
	}
	t.mu.Lock()
	return t
}

// forget drops a tenure that is over.
func (ts *tenures) forget(t *tenure) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease == nil && !t.asking && len(t.line) == 0 && !t.timed && ts.byLock[t.id] == t {
		delete(ts.byLock, t.id)
	}
}

// giveBack releases the locks that rest.
func (ts *tenures) giveBack() {
	ts.mu.Lock()
	all := slices.Collect(maps.Values(ts.byLock))
	ts.mu.Unlock()
	for _, t := range all {
		t.mu.Lock()
		if !t.rests() {
			t.mu.Unlock()
			continue
		}
		t.release()
	}
}

// wanted tells the tenure of a lock that another process waits for it. value is that of the lease
// which the master has.
func (ts *tenures) wanted(id, value string) {
	ts.mu.Lock()
	t := ts.byLock[id]
	ts.mu.Unlock()
	if t != nil {
		t.want(value)
	}
}

// renewCached renews the locks that stay in this process, because a master may have told in vain
// that another process waits.
func (c *Client) renewCached() {
	renewAll(slices.DeleteFunc(c.leases(), func(l *Lease) bool { return l.lock.tenure == nil }))
}

// acquireCached is acquire for a lock that is Cached.
func (l *lock) acquireCached(ctx context.Context) (*Lease, error) {
	lease, t, err := l.rested(ctx)
	if t == nil {
		return lease, err
	}
	k := call{ctx: ctx, since: l.client.watch.Now()}
	if t.lease == nil && !t.asking {
		t.asking = true
		t.mu.Unlock()
		lease, err = t.ask(l, &k)
	} else {
		w := &insider{ctx: ctx, lock: l, ready: make(chan struct{}, 1)}
		t.line = append(t.line, w)
		t.mu.Unlock()
		lease, err = t.wait(w, &k)
	}
	l.observeCall(&k, lease, err)
	return lease, err
}

// tryCached is try for a lock that is Cached. If another process has the lock, it gets a node
// timeout to give it back.
func (l *lock) tryCached(ctx context.Context) (*Lease, error) {
	lease, t, err := l.rested(ctx)
	if t == nil {
		return lease, err
	}
	k := call{ctx: ctx, since: l.client.watch.Now()}
	if t.lease != nil || t.asking {
		t.mu.Unlock()
		err = l.failed("lock", ErrTaken, nil)
	} else {
		t.asking = true
		t.mu.Unlock()
		lease, err = t.askSoon(l, &k)
	}
	l.observeCall(&k, lease, err)
	return lease, err
}

// rested returns a lease if the lock rests in this process, or if ctx carries a lease. Otherwise it
// returns the tenure, with its mutex held.
func (l *lock) rested(ctx context.Context) (*Lease, *tenure, error) {
	if outer, err := l.nested(ctx); outer != nil || err != nil {
		return outer, nil, err
	}
	now := l.client.watch.Now()
	if err := l.check(ctx, "lock"); err != nil {
		l.observeCall(&call{ctx: ctx, since: now}, nil, err)
		return nil, nil, err
	}
	t := l.client.tenures.of(l)
	if t.rests() && t.lease.leftAt(now) <= 0 {
		t.release()
		t = l.client.tenures.of(l)
	}
	if !t.rests() {
		return nil, t, nil
	}
	lease := t.section(ctx, l, now)
	t.mu.Unlock()
	if l.observed() {
		l.observeCall(&call{ctx: ctx, since: now}, lease, nil)
	}
	return lease, nil, nil
}

// rests reports whether the lock is in this process, unused. The mutex is held.
func (t *tenure) rests() bool { return t.lease != nil && t.used == nil }

// section returns a lease for one caller, which is the next user. The mutex is held.
func (t *tenure) section(ctx context.Context, l *lock, now drift.Instant) *Lease {
	s := &Lease{
		lock: l, claim: t.lease.claim, value: t.lease.value, ctx: ctx,
		of: t.lease, validity: validity{since: now, rest: l.opt.maxHold},
	}
	s.mu.In(t.client.seams.Steps)
	t.used = s
	return s
}

// ask has a caller, for which asking is set, acquire the lock from the masters.
func (t *tenure) ask(l *lock, k *call) (*Lease, error) {
	t.client.queues.Listen()
	misses := t.client.queues.Misses()
	of := *l
	of.tenure = t
	lease, err := of.tryAndWait(k)
	t.mu.Lock()
	t.asking = false
	if err != nil {
		t.goOn()
		return nil, err
	}
	now := t.client.watch.Now()
	t.lease, t.wanted = lease, nil
	if k.contended || t.early == values.ID(lease.value) {
		t.wanted = &demand{since: now} // the masters do not tell again of those already queued
	}
	s := t.section(k.ctx, l, now)
	t.mu.Unlock()
	if cause := lease.settle(); cause != nil {
		t.ended(lease, cause)
	} else if t.client.queues.Misses() > misses {
		lease.renewWithin(0)
	}
	return s, nil
}

// askSoon is ask for a node timeout.
func (t *tenure) askSoon(l *lock, k *call) (*Lease, error) {
	ctx := k.ctx
	limited, cancel := t.client.clock.WithTimeout(ctx, t.client.opt.nodeTimeout)
	defer cancel()
	k.ctx = limited
	lease, err := t.ask(l, k)
	k.ctx = ctx
	if failed := new(Error); limited.Err() != nil && ctx.Err() == nil && errors.As(err, &failed) {
		failed.Err, failed.last = cmp.Or(failed.last, ErrTaken), nil
	}
	return lease, err
}

// wait returns when a caller of this process has passed the lock on, or ctx ends.
func (t *tenure) wait(w *insider, k *call) (*Lease, error) {
	w.lock.observe(Event{Kind: LockWaiting})
	k.waited = true
	if err := t.client.seams.Wait(k.ctx, w.ready); err != nil {
		t.withdraw(w)
		e := w.lock.failed("lock", ended(k.ctx), nil)
		e.last = ErrTaken
		return nil, e
	}
	if w.lease == nil {
		return t.ask(w.lock, k)
	}
	return w.lease, nil
}

// withdraw takes a caller out of the line. If it was served meanwhile, the next one is.
func (t *tenure) withdraw(w *insider) {
	t.mu.Lock()
	if i := slices.Index(t.line, w); i >= 0 {
		t.line = slices.Delete(t.line, i, i+1)
		t.mu.Unlock()
		return
	}
	if w.lease != nil {
		t.mu.Unlock()
		w.lease.end(ErrUnlocked)
		return
	}
	t.asking = false
	t.goOn()
}

// over ends a section: the lock goes to the next caller of this process, back to the masters, or
// rests here. It does nothing for a section whose tenure has ended.
func (t *tenure) over(s *Lease) {
	now := t.client.watch.Now()
	t.mu.Lock()
	if t.used != s {
		t.mu.Unlock()
		return
	}
	t.used = nil
	switch {
	case t.mustGo(now), t.lease.leftAt(now) <= 0: // an expired one ends now, or might be valid again when our clock is set back (L34)
		t.release()
	case len(t.line) > 0:
		t.pass(now)
		t.mu.Unlock()
	default:
		t.rest(now)
	}
}

// userOf returns the section of a lease that has the lock, or nil.
func (t *tenure) userOf(lease *Lease) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != lease {
		return nil
	}
	return t.used
}

// mustGo reports whether another process is next. The mutex is held.
func (t *tenure) mustGo(now drift.Instant) bool {
	d := t.wanted
	return d != nil && (len(t.line) == 0 || d.passed >= mostPassed || now.Sub(d.since) >= longestPassing)
}

// pass gives the lock to the first caller in line. The mutex is held.
func (t *tenure) pass(now drift.Instant) {
	if t.wanted != nil {
		t.wanted.passed++
	}
	w := t.next()
	w.lease = t.section(w.ctx, w.lock, now)
	w.ready <- struct{}{}
}

func (t *tenure) next() *insider {
	w := t.line[0]
	t.line[0] = nil
	t.line = t.line[1:]
	return w
}

// rest leaves the lock in the process, unused. It gives the mutex back.
func (t *tenure) rest(now drift.Instant) {
	t.rested = now
	timed := t.timed
	t.timed = true
	t.mu.Unlock()
	if !timed {
		t.client.timers.Set(&t.timer, t.idle, t)
	}
}

// Fire gives back a lock that has rested for too long.
func (t *tenure) Fire() {
	now := t.client.watch.Now()
	t.mu.Lock()
	if left := t.idle - now.Sub(t.rested); t.lease != nil && (t.used != nil || left > 0) {
		if t.used != nil {
			left = t.idle
		}
		t.mu.Unlock()
		t.client.timers.Set(&t.timer, left, t)
		return
	}
	t.timed = false
	if t.lease == nil {
		t.mu.Unlock()
		t.client.tenures.forget(t)
		return
	}
	t.release()
}

// want notes that another process waits for the lock. A lock that rests is given back immediately.
func (t *tenure) want(value string) {
	now := t.client.watch.Now()
	t.mu.Lock()
	if id := values.ID(value); t.lease == nil || values.ID(t.lease.value) != id {
		t.early = id
		t.mu.Unlock()
		return
	}
	if t.wanted == nil {
		t.wanted = &demand{since: now}
	}
	if t.used != nil {
		t.mu.Unlock()
		return
	}
	t.release()
}

// ended ends the tenure of a lease that has ended.
func (t *tenure) ended(lease *Lease, cause error) {
	t.mu.Lock()
	if t.lease != lease {
		t.mu.Unlock()
		return
	}
	s := t.used
	t.lease, t.used = nil, nil
	t.goOn()
	switch {
	case s == nil:
	case cause != ErrClosed:
		s.lose(cause)
	case s.end(cause):
		s.observeEnd(LeaseReleased, nil)
	}
}

// release gives the lock back to the masters. The next caller asks them behind that. release gives
// the mutex back.
func (t *tenure) release() {
	lease := t.lease
	t.lease = nil
	t.mu.Unlock()
	lease.Release()
	t.mu.Lock()
	t.goOn()
}

// goOn has the next caller ask the masters, if this process does not have the lock. It gives the
// mutex back.
func (t *tenure) goOn() {
	if t.lease != nil || t.asking {
		t.mu.Unlock()
		return
	}
	if len(t.line) > 0 {
		t.asking = true
		t.next().ready <- struct{}{}
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.client.tenures.forget(t)
}

// cachedClaim is a claim to a Cached lock: renewals also say whether others wait.
type cachedClaim struct{ *exclusive }

func (e cachedClaim) extend(value string, ttl time.Duration) *wire.Command {
	return wire.ExtendCached(e.key, e.queue, value, ttl)
}
