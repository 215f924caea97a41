package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Cached keeps the lock in this process after Unlock, until another process waits for it. The
// next Lock of this client then asks no master, and callers of this client pass the lock to each
// other, in the order of their arrival. All their handles must be Cached. Each Lock still returns a
// lease of its own, which ends with its Unlock. Unlock then asks no master: nil says that the lease
// was valid. Lease.Value, with the metadata, and the TTL are those of the Lock that asked the masters.
// Lease.Extend, AtRisk and Requested are about the lock as long as this process has it.
//
// If another process waits, it is served as soon as the lock is not in use: the masters tell this
// client, and tell it again with each renewal. Before that, callers of this client may have the lock 16
// times, for 10ms. A TryLock of another process waits for a node timeout for that, if its handle is
// Cached, too.
//
// Clients that do not queue are refused as long as this process has the lock: TryLock of other
// handles, Polling, other libraries, and clients that no quorum of masters can notify (see
// Client.Healthy). The lock is given back when it has not been used for as long as idle says, by the
// handle that used it last: by default, for its TTL.
//
// A process that stops without Close leaves the lock to its TTL, whether it used the lock or not. Cached
// does not go with Fenced, because a token belongs to one Lock, nor with AtLeast, Fair, MaxHold, NoRenew,
// Polling and StopWithin.
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

// idle is for how long the lock rests in this process.
func (l *lock) idle() time.Duration { return cmp.Or(*l.opt.cached, l.opt.ttl) }

// cachedClaim is a claim to a Cached lock: renewals also say whether others wait.
type cachedClaim struct{ *exclusive }

func (e cachedClaim) extend(value string, ttl time.Duration) *wire.Command {
	return wire.ExtendCached(e.key, e.queue, value, ttl)
}

// acquireCached is acquire, or try, for a lock that is Cached.
func (l *lock) acquireCached(ctx context.Context, tries bool) (*Lease, error) {
	if l.home != nil {
		enter := func(l *lock, k *call) (*Lease, error) { return l.enterTenure(k, tries) }
		if tries {
			return l.home.once(ctx, enter)
		}
		return l.home.until(ctx, enter)
	}
	k := call{ctx: ctx}
	lease, err := l.enterTenure(&k, tries)
	l.observeCall(&k, lease, err)
	return lease, err
}

// enterTenure returns a section. A caller whose lease has ended before it could use it, because the
// process stood still, enters anew.
func (l *lock) enterTenure(k *call, tries bool) (*Lease, error) {
	if outer, err := l.nested(k); k.nested {
		return outer, err
	}
	if l.observed() {
		k.since = l.client.watch.Now()
	}
	for {
		if err := l.begin(k); err != nil {
			return nil, err
		}
		t, fx := l.client.tenures.come(l, k.ctx, tries)
		if fx.section != nil {
			return fx.section, nil
		}
		lease, err := t.turn(fx, l, k, tries)
		if err != nil || lease != nil && lease.take(k.ctx) {
			return lease, err
		}
		if lease != nil {
			lease.end(ErrExpired)
		}
	}
}

// take makes a section its caller's, which has waited for it, if it is valid. Until then the observer is
// told nothing of it.
func (l *Lease) take(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why(l.now()) != nil {
		return false
	}
	l.ctx = ctx
	return true
}

// turn has a caller that came ask or wait, unless it is refused. It returns nil if the lease has ended.
func (t *tenure) turn(fx tenureEffects, l *lock, k *call, tries bool) (*Lease, error) {
	switch {
	case fx.asks:
		return t.ask(l, k, tries)
	case fx.joined != nil:
		return t.wait(fx.joined, k, tries)
	}
	if fx.asked {
		return nil, l.failed("lock", l.client.undecided(), nil)
	}
	return nil, l.failed("lock", ErrTaken, nil)
}

// wait returns when a caller of this process has passed the lock on, or ctx ends.
func (t *tenure) wait(w *insider, k *call, tries bool) (*Lease, error) {
	if !k.waited {
		w.lock.Waits()
		k.waited = true
	}
	if err := t.client.seams.Wait(k.ctx, w.ready); err != nil {
		fx := t.post(tenureEvent{kind: callerLeft, caller: w})
		failed := w.lock.failed("lock", w.lock.closedOr(ended(k.ctx)), nil)
		failed.last = ErrTaken
		if fx.asked {
			failed.last = cmp.Or(reason(t.client.queues.Why(w.lock)), t.client.undecided())
		}
		return nil, failed
	}
	if w.lease == nil {
		return t.ask(w.lock, k, tries)
	}
	return w.lease, nil
}

// ask has a caller whose turn it is acquire the lease from the masters.
func (t *tenure) ask(l *lock, k *call, tries bool) (*Lease, error) {
	t.client.queues.Listen()
	of, asked := *l, call{ctx: k.ctx, since: t.client.watch.Now()}
	of.tenure, of.told = t, k.waited
	lease, err := of.askMasters(&asked, tries)
	k.attempts, k.votes, k.waited = k.attempts+asked.attempts, asked.votes, k.waited || asked.waited
	if err != nil {
		t.post(tenureEvent{kind: leaseRefused})
		return nil, err
	}
	fx := t.post(tenureEvent{kind: leaseAcquired, lock: l, lease: lease, others: asked.others})
	return fx.section, nil
}

// askMasters is tryAndWait, if the caller tries for little more than a node timeout: another process
// that has the lock, and does not use it, gives it back within that.
func (l *lock) askMasters(k *call, tries bool) (*Lease, error) {
	if !tries {
		return l.tryAndWait(k)
	}
	ctx, wait := k.ctx, l.client.opt.nodeTimeout
	limited, cancel := l.client.clock.WithTimeout(ctx, wait+wait/8) // an ask is decided by then
	defer cancel()
	k.ctx = limited
	lease, err := l.tryAndWait(k)
	k.ctx = ctx
	failed := new(Error)
	if ctx.Err() != nil || !errors.As(err, &failed) || !errors.Is(failed.Err, context.DeadlineExceeded) {
		return lease, err
	}
	if failed.Err, failed.last = failed.last, nil; failed.Err == nil {
		failed.Err, failed.Votes = l.client.undecided(), nil // it was behind others, or stood still
	}
	return nil, failed
}

// undecided is why a caller does not get a lock that the masters have not decided about. It goes by what
// is known of the masters now: what another caller was told when it asked may be out of date.
func (c *Client) undecided() error {
	if c.voteless() != nil {
		return ErrNoQuorum
	}
	return ErrTaken
}

// tenures are the Cached locks that a client has or wants, by the id of their kind.
type tenures struct {
	mu     seam.Mutex
	byLock map[string]*tenure
}

// come posts that a caller comes to lock. The mutex is held from finding the tenure until then: if it was
// dropped in between, there would be two of one lock.
func (ts *tenures) come(l *lock, ctx context.Context, tries bool) (*tenure, tenureEffects) {
	ts.mu.Lock()
	t := ts.byLock[l.kind.id]
	if t == nil {
		t = &tenure{client: l.client, id: l.kind.id}
		if ts.byLock == nil {
			ts.byLock = map[string]*tenure{}
		}
		ts.byLock[t.id] = t
	}
	fx := t.advance(tenureEvent{kind: callerCame, ctx: ctx, lock: l, tries: tries})
	ts.mu.Unlock()
	t.do(&fx)
	return t, fx
}

// othersWait posts that another process waits for the lock of that id, which value holds.
func (ts *tenures) othersWait(id, value string) {
	ts.mu.Lock()
	t := ts.byLock[id]
	ts.mu.Unlock()
	if t != nil {
		t.post(tenureEvent{kind: othersWait, value: value})
	}
}

// missed posts that what masters said may not have reached us. Nothing follows but renewals, which are
// made one after the other.
func (ts *tenures) missed() {
	var leases []*Lease
	for _, t := range ts.all() {
		ts.mu.Lock()
		fx := t.advance(tenureEvent{kind: messagesMissed})
		ts.mu.Unlock()
		if fx.renew != nil {
			leases = append(leases, fx.renew)
		}
	}
	renewAll(leases)
}

// giveBack releases the locks that rest.
func (ts *tenures) giveBack() {
	for _, t := range ts.all() {
		t.post(tenureEvent{kind: nobodyNeeds})
	}
}

func (ts *tenures) all() []*tenure {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	all := make([]*tenure, 0, len(ts.byLock))
	for _, id := range slices.Sorted(maps.Keys(ts.byLock)) {
		all = append(all, ts.byLock[id])
	}
	return all
}

// Fire is the tenure's timer.
func (t *tenure) Fire() { t.post(tenureEvent{kind: timerFired}) }

// post has an event happen to the tenure.
func (t *tenure) post(e tenureEvent) tenureEffects {
	mu := &t.client.tenures.mu
	mu.Lock()
	fx := t.advance(e)
	mu.Unlock()
	t.do(&fx)
	return fx
}

// advance is a step, and those of its effects that must happen under the same mutex.
func (t *tenure) advance(e tenureEvent) tenureEffects {
	e.now = t.client.watch.Now()
	if t.lease != nil {
		e.expired = t.lease.leftAt(e.now) <= 0
	}
	if e.kind == leaseAcquired {
		e.cause = e.lease.detach()
	}
	fx := t.step(&e)
	if t.state == used && t.section == nil {
		t.give(&e, &fx)
		t.client.timers.Awoke(e.now)
	}
	switch {
	case fx.rest > 0:
		t.client.timers.SetFrom(&t.timer, e.now, fx.rest, t)
	case t.lease == nil && t.timed:
		t.timed = false
		t.client.timers.Cancel(&t.timer)
	}
	if all := t.client.tenures.byLock; t.state == away && all[t.id] == t {
		delete(all, t.id)
	}
	return fx
}

// give makes a section for the caller whose turn it is.
func (t *tenure) give(e *tenureEvent, fx *tenureEffects) {
	l := e.lock
	if fx.wakes != nil {
		l = fx.wakes.lock
	}
	s := &Lease{
		lock: l, claim: t.lease.claim, value: t.lease.value, holds: 1, ctx: e.ctx,
		of: t.lease, validity: validity{since: e.now, rest: l.opt.maxHold},
	}
	s.mu.In(t.client.seams.Steps)
	t.section, fx.section = s, s
	if fx.wakes != nil {
		fx.wakes.lease = s
	}
}

// do does what follows from a step.
func (t *tenure) do(fx *tenureEffects) {
	if fx.ends != nil {
		fx.ends.lose(fx.cause)
	}
	if fx.wakes != nil {
		fx.wakes.ready <- struct{}{}
	}
	if fx.drops != nil {
		fx.drops.end(ErrUnlocked)
	}
	if fx.renew != nil {
		fx.renew.renewWithin(0)
	}
	if fx.queue {
		t.client.queues.Expect(fx.release.lock)
	}
	if fx.release != nil {
		fx.release.Release()
		t.post(tenureEvent{kind: leaseReleased})
	}
}

// userOf returns the section of a lease that is in use, or nil.
func (t *tenure) userOf(lease *Lease) *Lease {
	mu := &t.client.tenures.mu
	mu.Lock()
	defer mu.Unlock()
	if t.lease != lease {
		return nil
	}
	return t.section
}
