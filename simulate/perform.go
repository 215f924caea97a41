package simulate

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// perform does what an action says: mostly locks, works, writes and unlocks.
func (t *trial) perform(p *Process, a Action) {
	if a.Resize > 0 {
		t.resize(p, a)
		return
	}
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	defer cancel()
	if a.How == ByDo {
		t.do(p, ctx, a)
		return
	}
	h, err := t.lock(p, ctx, a)
	cancel()
	t.note(p, err)
	switch {
	case err == nil:
		t.use(p, h, a)
	case errors.Is(err, redlock.ErrPermits):
		t.learn(p, a.names()[0])
	}
}

// use does the work that the lock was taken for, and unlocks.
func (t *trial) use(p *Process, h *grip, a Action) {
	s := t.section(h, a)
	work := a.Hold
	t.writeDown(p, h, a)
	t.crashes(p, a)
	t.mishap(p, a, WhileHolding)
	if a.Extend {
		t.strikeOut(p)
		work /= 2
		p.during(h.Done(), work)
		t.extend(p, h, a)
	}
	p.during(h.Done(), work+a.After)
	if a.Nested {
		t.nested(p, h, a)
	}
	if a.Inspect {
		t.inspects(p, a)
		t.locksOneOfThem(p, h, a)
	}
	if h.Valid() {
		if d := t.config.remote; d > 0 {
			p.Sleep(context.Background(), p.client.dice.spread(time.Millisecond, d))
		}
		for _, part := range s {
			part.storage.Write(part.known, h.Token())
		}
		t.stats.Writes += len(s)
	}
	t.strikeOut(p)
	if a.Downgrade {
		t.downgrade(p, h, a, work)
	}
	t.unlock(p, h, a)
}

// section is what a holder has read from the storages that its locks protect, to
// be written back.
type section []resource

type resource struct {
	storage *Storage
	known   int
}

// section begins the work. It is empty for readers and holders of permits: they
// share the lock, and write nothing.
func (t *trial) section(h *grip, a Action) section {
	if a.Read || t.config.Lock.IsSemaphore() {
		return nil
	}
	var s section
	for _, name := range a.names() {
		storage := t.storage(name)
		storage.fence(h.Token())
		s = append(s, resource{storage, storage.Read()})
	}
	return s
}

// nested locks once more while the lock is held.
func (t *trial) nested(p *Process, h *grip, a Action) {
	if r := t.config.rung; r != nil {
		if inner, err := r.lock(p, context.Background(), lockName); err == nil {
			inner.Unlock(context.Background())
		}
		return
	}
	lease := h.holding.(*redlock.Lease)
	var inner *redlock.Lease
	var err error
	ended := lease.Err() != nil // its context may not have ended yet
	p.call(func() { inner, err = t.config.mutex(p.client.api, a).Lock(lease.Context()) })
	if err != nil {
		if lease.Err() == nil {
			p.Fail("%s holds a re-entrant lock and could not lock it again: %v", p.name, err)
		}
		return
	}
	p.check(lockedAgain, inner == lease || ended || lease.Err() != nil, "%s holds a re-entrant lock, locked it again and got another lease", p.name)
	if inner != lease { // the first had ended, and the lock was taken anew
		p.call(func() { inner.Unlock(context.Background()) })
		return
	}
	p.during(h.Done(), a.Hold/4)
	p.call(func() { err = inner.Unlock(context.Background()) })
	switch end := lease.Err(); {
	case errors.Is(end, redlock.ErrUnlocked):
		p.Fail("%s unlocked its second hold of a re-entrant lock, and that ended the first", p.name)
	case end == nil && (err != nil || lease.Holds() != 1):
		p.Fail("%s unlocked its second hold of a re-entrant lock: error %v, and %d holds are left instead of 1", p.name, err, lease.Holds())
	}
}

// locksOneOfThem has the holder of a Multi lock one of its names: the call would wait for
// its own caller, and must say so at once.
func (t *trial) locksOneOfThem(p *Process, h *grip, a Action) {
	lease, ok := h.holding.(*redlock.Lease)
	if !ok || !t.config.Lock.IsMulti() || !lease.Valid() {
		return
	}
	ctx, cancel := p.Clock().WithTimeout(lease.Context(), t.config.nodeTimeout)
	defer cancel()
	name := a.names()[0]
	var inner *redlock.Lease
	var err error
	p.call(func() {
		inner, err = p.client.api.Mutex(name, optionsOf[redlock.MutexOption](t.config, a)...).Lock(ctx)
	})
	if inner != nil {
		p.call(func() { inner.Unlock(context.Background()) })
	}
	if lease.Err() == nil {
		p.check(waitsForOthers, errors.Is(err, redlock.ErrNested), "%s holds %q as one of several names, locked it again, and was told: %v", p.name, name, err)
	}
}

// downgrade goes on as a reader for d.
func (t *trial) downgrade(p *Process, h *grip, a Action, d time.Duration) {
	lease := h.holding.(*redlock.Lease)
	h.claim.asked = true
	m := p.client.api.RWMutex(lease.Name())
	err := t.ask(p, "Downgrade", t.renewing(p, h, a), func() error { return m.Downgrade(context.Background(), lease) })
	t.note(p, err)
	p.during(h.Done(), d)
}

func (t *trial) extend(p *Process, h *grip, a Action) {
	t.mishap(p, a, WhileExtending)
	ttl, over := t.config.extended(a), t.over(p, h)
	h.claim.asked = true
	err := t.ask(p, "Extend", t.renewing(p, h, a), func() error { return h.Extend(context.Background(), ttl) })
	t.note(p, err)
	t.check.examine(h.claim)
	h.claim.asked = false // what it asked for has come, or never does
	if over() && !saysEnded(err) {
		p.Fail("%s extended a lease that had ended, and got the error %v, which does not say so", p.name, err)
	}
	if left := h.Until().Sub(p.Clock().Now()); err == nil && left > ttl {
		p.Fail("%s extended its lease to %v, and it lasts for another %v", p.name, ttl, left)
	}
}

// over returns a function to call later. It reports whether the lease had ended when
// over was called, unless the client's clock was set since: that may have been why.
func (t *trial) over(p *Process, h *grip) func() bool {
	over, uneven := !h.Valid(), p.host.clock.uneven
	return func() bool { return over && uneven == p.host.clock.uneven && t.config.rung == nil }
}

// saysEnded reports whether an error says that the lease has ended.
func saysEnded(err error) bool {
	return errors.Is(err, redlock.ErrExpired) || errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrClosed)
}

// unlock gives the lock back, twice if the action says so.
func (t *trial) unlock(p *Process, h *grip, a Action) {
	t.check.leave(h.claim)
	if p.client.closing {
		return // Close has released it
	}
	t.mishap(p, a, WhileUnlocking)
	keepers, somewhere, over := t.check.keepers(h.claim), t.check.anywhere(h.claim), t.over(p, h)
	held := h.Valid()
	err := t.ask(p, "Unlock", t.config.nodeTimeout, func() error { return h.Unlock(context.Background()) })
	t.note(p, err)
	if t.config.rung != nil {
		return
	}
	if over() && !saysEnded(err) {
		p.Fail("%s unlocked a lease that had ended, and got the error %v, which does not say so", p.name, err)
	}
	t.check.unlocked(h.claim, keepers, somewhere, err)
	if held && errors.Is(err, redlock.ErrLost) {
		t.check.expiredMeanwhile(h.claim)
	}
	if hasEnded(h) && h.claim.value != "" {
		p.client.unlocked[h.claim.value] = true
	}
	if h.Valid() {
		p.Fail("%s has unlocked its lease, which is still valid", p.name)
	}
	if !a.Again {
		return
	}
	if err == nil {
		t.adoptInVain(p, h, a)
	}
	p.call(func() { err = h.Unlock(context.Background()) })
	if !errors.Is(err, redlock.ErrNotHeld) {
		p.Fail("%s unlocked a second time, and got the error %v instead of ErrNotHeld", p.name, err)
	}
	p.call(func() { err = h.Extend(context.Background(), t.config.ttl(a)) })
	if err == nil {
		p.Fail("%s has extended a lease that it had unlocked", p.name)
	}
}

// do does the work in redlock.Do.
func (t *trial) do(p *Process, ctx context.Context, a Action) {
	t.stats.Calls++
	t.check.calls++
	began, ran := t.world.now, false
	use := func(n int) {
		for _, name := range a.names() {
			t.check.ledger.book(name).inUse += n
		}
	}
	defer func() {
		if ran {
			use(-1)
		}
	}()
	var err error
	lost := new(loss)
	p.call(func() {
		err = redlock.Do(context.WithValue(ctx, lossKey{}, lost), t.config.mutex(p.client.api, a), func(ctx context.Context) error {
			p.calling = false
			defer func() { p.calling = true }()
			ran = true
			use(1)
			t.stats.Acquisitions++
			t.stats.Waits.record(t.world.now - began)
			p.Sleep(ctx, a.Hold)
			if lost.noticed && ctx.Err() == nil && t.world.now-max(lost.at, p.host.resumed) > punctual {
				p.Fail("%s: the lease of Do has ended, but the context of its function has not", p.name)
			}
			return nil
		})
	})
	t.note(p, err)
	if err == nil && !ran {
		p.Fail("%s: Do returned nil without having run anything", p.name)
	}
}

// loss tells the function of a Do when the client noticed that its lease had ended.
type loss struct {
	noticed bool
	at      time.Duration
}

// lossKey is the key of a loss in the context of a call.
type lossKey struct{}

// longestPoll is how seldom a waiter asks that polls.
const longestPoll = 100 * time.Millisecond

// optionsOf returns the options of an action's lock, as those of one kind of lock.
func optionsOf[O any](cfg *Config, a Action) (opts []O) {
	for _, opt := range cfg.lockOptions(a) {
		opts = append(opts, opt.(O))
	}
	return opts
}

func (cfg *Config) lockOptions(a Action) []any {
	var opts []any
	if cfg.Lock.IsFenced() {
		opts = append(opts, redlock.Fenced())
	}
	if cfg.Lock.IsFair() {
		opts = append(opts, redlock.Fair())
	}
	if cfg.Lock == ReentrantLock {
		opts = append(opts, redlock.Reentrant())
	}
	if cfg.polling {
		opts = append(opts, redlock.Polling(longestPoll/2, longestPoll))
	}
	if !a.Renew {
		opts = append(opts, redlock.NoRenew())
	}
	if a.TTL > 0 {
		opts = append(opts, redlock.TTL(a.TTL))
	}
	return opts
}

// grip is a lock that is held, whatever kind of lock it is.
type grip struct {
	holding
	claim *claim
}

// renewing is how long Extend may wait: for a renewal that is under way, until the
// validity is over, and if that renewal succeeds, for the masters until the new
// validity is over.
func (t *trial) renewing(p *Process, h *grip, a Action) time.Duration {
	left := max(0, h.Until().Sub(p.Clock().Now()))
	return left + max(left, t.config.extended(a))
}

// extended returns the TTL that an action extends its lock to.
func (cfg *Config) extended(a Action) time.Duration { return cmp.Or(a.Shorten, cfg.ttl(a)) }

// ttl returns the TTL of an action's lock.
func (cfg *Config) ttl(a Action) time.Duration { return cmp.Or(a.TTL, cfg.TTL) }

// holding is what *redlock.Lease and the naive locks have in common.
type holding interface {
	hold
	Token() uint64
	Extend(ctx context.Context, ttl time.Duration) error
	Unlock(ctx context.Context) error
}

// lock takes an action's lock, and tells the checks.
func (t *trial) lock(p *Process, ctx context.Context, a Action) (*grip, error) {
	began := t.world.now
	t.stats.Calls++
	t.check.calls++
	t.mishap(p, a, WhileLocking)
	s := t.stake(p, a)
	h, err := t.take(p, ctx, a)
	t.trace.add(span{lane: p.client.host.name, kind: spanWaiting, from: began, to: t.world.now, client: p.client.index, label: "waiting"})
	if err != nil {
		t.check.over(s.line)
		if errors.Is(err, redlock.ErrNoQuorum) {
			t.stats.NoQuorum++
		}
		return nil, err
	}
	t.stats.Acquisitions++
	t.stats.Waits.record(t.world.now - began)
	t.granted(p.client)
	return &grip{h, t.check.grant(p.client, h, s)}, nil
}

func (t *trial) take(p *Process, ctx context.Context, a Action) (h holding, err error) {
	if r := t.config.rung; r != nil {
		return r.lock(p, ctx, a.names()[0])
	}
	l := t.config.locker(p.client.api, a, p.client.permitsOf(a.names()[0]))
	if a.How == ByTryLock {
		watched := t.check.attempts(p, a)
		err = t.ask(p, "TryLock", 2*t.config.nodeTimeout, func() (err error) {
			h, err = l.try(ctx)
			return err
		})
		t.check.refused(p, watched, err)
		return h, err
	}
	defer t.check.wanting(p, ctx, a)()
	p.call(func() { h, err = l.lock(ctx) })
	return h, err
}
