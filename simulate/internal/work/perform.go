package work

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/naive"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// perform performs an action: usually it locks, works, writes and unlocks.
func (t *Work) perform(p *promises.Caller, a plan.Action) {
	if a.Resize > 0 {
		t.resize(p, a)
		return
	}
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	defer cancel()
	if a.How == plan.ByDo {
		t.do(p, ctx, a)
		return
	}
	t.asks(p, a)
	d := t.deadline(p, &a)
	h, err := t.lock(p, ctx, a)
	cancel()
	t.note(p, err)
	switch {
	case err == nil:
		h.until(d)
		t.use(p, h, a)
	case errors.Is(err, redlock.ErrPermits):
		t.learn(p, a.LockNames()[0])
	}
}

// use does the work that the lock was taken for, and unlocks.
func (t *Work) use(p *promises.Caller, h *grip, a plan.Action) {
	defer keeping(p, h.deadline)()
	s := t.section(h, a)
	work := a.Hold
	t.listens(p, h)
	t.writeDown(p, h, a)
	t.crashes(p, a)
	t.mishap(p, a, plan.WhileHolding)
	if a.Extend {
		t.strikeOut(p)
		work /= 2
		p.During(h.Done(), work)
		t.extend(p, h, a)
	}
	if t.heeds(p, h) {
		work = 0
	}
	if p.During(h.Done(), work+a.After) {
		t.overruns(p, a, h.deadline)
	}
	if a.Nested {
		t.nested(p, h, a)
	}
	if a.Inspect {
		t.Inspects(p, a)
		t.locksOneOfThem(p, h, a)
	}
	if h.Valid() {
		if d := t.Config.Remote; d > 0 {
			p.Sleep(context.Background(), p.Client.Dice.Spread(time.Millisecond, d))
		}
		for _, part := range s {
			part.storage.Write(part.known, h.Token())
		}
		t.Stats.Writes += len(s)
	}
	t.heeds(p, h)
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
	storage *promises.Storage
	known   int
}

// section begins the work. It is empty for readers and holders of permits: they
// share the lock, and write nothing.
func (t *Work) section(h *grip, a plan.Action) section {
	if a.Read || t.Config.Lock.IsSemaphore() {
		return nil
	}
	var s section
	for _, name := range a.LockNames() {
		storage := t.Storage(name)
		storage.Fence(h.Token())
		s = append(s, resource{storage, storage.Read()})
	}
	return s
}

// nested locks once more while the lock is held.
func (t *Work) nested(p *promises.Caller, h *grip, a plan.Action) {
	if r := t.Config.Rung; r != nil {
		if inner, err := naive.Locks[r](p, context.Background(), plan.LockName); err == nil {
			inner.Unlock(context.Background())
		}
		return
	}
	lease := h.Holding.(*redlock.Lease)
	var inner *redlock.Lease
	var err error
	ended := lease.Err() != nil // its context may not have ended yet
	p.Call(func() { inner, err = mutexOf(t.Config, p.Client.API, a).Lock(lease.Context()) })
	if err != nil {
		if lease.Err() == nil {
			p.Fail("%s holds a re-entrant lock and could not lock it again: %v", p.Name(), err)
		}
		return
	}
	p.Check(tally.LockedAgain, inner == lease || ended || lease.Err() != nil, "%s holds a re-entrant lock, locked it again and got another lease", p.Name())
	if inner != lease { // the first had ended, and the lock was taken anew
		p.Call(func() { inner.Unlock(context.Background()) })
		return
	}
	p.During(h.Done(), a.Hold/4)
	p.Call(func() { err = inner.Unlock(context.Background()) })
	switch end := lease.Err(); {
	case errors.Is(end, redlock.ErrUnlocked):
		p.Fail("%s unlocked its second hold of a re-entrant lock, and that ended the first", p.Name())
	case end == nil && (err != nil || seam.HoldsOf(lease) != 1):
		p.Fail("%s unlocked its second hold of a re-entrant lock: error %v, and %d holds are left instead of 1", p.Name(), err, seam.HoldsOf(lease))
	}
}

// locksOneOfThem has the holder of a Multi lock one of its names. The call would wait for its
// own caller, and must return an error immediately.
func (t *Work) locksOneOfThem(p *promises.Caller, h *grip, a plan.Action) {
	lease, ok := h.Holding.(*redlock.Lease)
	if !ok || !t.Config.Lock.IsMulti() || !lease.Valid() {
		return
	}
	ctx, cancel := p.Clock().WithTimeout(lease.Context(), t.Config.NodeTimeout)
	defer cancel()
	name := a.LockNames()[0]
	var inner *redlock.Lease
	var err error
	p.Call(func() {
		inner, err = p.Client.API.Mutex(name, optionsOf[redlock.MutexOption](t.Config, a)...).Lock(ctx)
	})
	if inner != nil {
		p.Call(func() { inner.Unlock(context.Background()) })
	}
	if lease.Err() == nil {
		p.Check(tally.WaitsForOthers, errors.Is(err, redlock.ErrNested), "%s holds %q as one of several names, locked it again, and was told: %v", p.Name(), name, err)
	}
}

// downgrade goes on as a reader for d.
func (t *Work) downgrade(p *promises.Caller, h *grip, a plan.Action, d time.Duration) {
	lease := h.Holding.(*redlock.Lease)
	h.claim.Calls()
	h.claim.Writes = t.Config.Lacks.Told
	m := p.Client.API.RWMutex(lease.Name())
	err := t.Ask(p, "Downgrade", t.renewing(p, h, a), func() error { return m.Downgrade(context.Background(), lease) })
	h.claim.Writes = h.claim.Writes && err != nil
	t.note(p, err)
	p.During(h.Done(), d)
}

func (t *Work) extend(p *promises.Caller, h *grip, a plan.Action) {
	t.mishap(p, a, plan.WhileExtending)
	ttl, over := t.Config.Extended(a), t.over(p, h)
	h.claim.Calls()
	err := t.Ask(p, "Extend", t.renewing(p, h, a), func() error { return h.Extend(context.Background(), ttl) })
	t.note(p, err)
	t.Check.Examine(h.claim)
	h.claim.Asked = false // its renewal has come, or never will
	if over() && !saysEnded(err) {
		p.Fail("%s extended a lease that had ended, and got the error %v, which does not say so", p.Name(), err)
	}
	if left := h.Until().Sub(p.Clock().Now()); err == nil && left > ttl {
		p.Fail("%s extended its lease to %v, and it lasts for another %v", p.Name(), ttl, left)
	}
}

// over returns a function to call later. It reports whether the lease had ended when
// over was called, unless the client's clock was set since: that may have been why.
func (t *Work) over(p *promises.Caller, h *grip) func() bool {
	over, uneven := !h.Valid(), p.Host.Clock.Uneven
	return func() bool { return over && uneven == p.Host.Clock.Uneven && t.Config.Rung == nil }
}

// saysEnded reports whether an error says that the lease has ended.
func saysEnded(err error) bool {
	return errors.Is(err, redlock.ErrExpired) || errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrClosed)
}

// unlock gives the lock back, twice if the action says so.
func (t *Work) unlock(p *promises.Caller, h *grip, a plan.Action) {
	t.Check.Leave(h.claim)
	if p.Client.Closing && h.deadline == nil {
		return // Close has released it
	}
	t.mishap(p, a, plan.WhileUnlocking)
	keepers, somewhere, over := t.Check.Keepers(h.claim), t.Check.Anywhere(h.claim), t.over(p, h)
	held := h.Valid()
	err := t.Ask(p, "Unlock", t.Config.NodeTimeout, func() error { return h.Unlock(context.Background()) })
	t.note(p, err)
	if h.deadline != nil {
		h.deadline.Over()
	}
	if t.Config.Rung != nil {
		return
	}
	if over() && !saysEnded(err) {
		p.Fail("%s unlocked a lease that had ended, and got the error %v, which does not say so", p.Name(), err)
	}
	t.Check.Unlocked(h.claim, keepers, somewhere, err)
	if held && errors.Is(err, redlock.ErrLost) {
		t.Check.ExpiredMeanwhile(h.claim)
	}
	if promises.HasEnded(h) && h.claim.Value != "" && !masters.IsCached(h.claim.Value) {
		p.Client.Unlocked[h.claim.Value] = true
	}
	if h.Valid() {
		p.Fail("%s has unlocked its lease, which is still valid", p.Name())
	}
	if !a.Again {
		return
	}
	if err == nil && !masters.IsCached(h.claim.Value) {
		t.adoptInVain(p, h, a)
	}
	p.Call(func() { err = h.Unlock(context.Background()) })
	if !errors.Is(err, redlock.ErrNotHeld) {
		p.Fail("%s unlocked a second time, and got the error %v instead of ErrNotHeld", p.Name(), err)
	}
	p.Call(func() { err = h.Extend(context.Background(), t.Config.TTLFor(a)) })
	if err == nil {
		p.Fail("%s has extended a lease that it had unlocked", p.Name())
	}
}

// do does the work in redlock.Do.
func (t *Work) do(p *promises.Caller, ctx context.Context, a plan.Action) {
	t.Stats.Calls++
	t.Check.Calls++
	began, ran := t.World.Now, false
	use := func(n int) {
		for _, name := range a.LockNames() {
			t.Check.Ledger.Book(name).InUse += n
		}
	}
	defer func() {
		if ran {
			use(-1)
		}
	}()
	var err error
	lost := new(promises.Loss)
	d := t.deadline(p, &a)
	defer keeping(p, d)()
	p.Call(func() {
		err = redlock.Do(context.WithValue(ctx, promises.LossKey{}, lost), mutexOf(t.Config, p.Client.API, a), func(ctx context.Context) error {
			p.Calling = false
			defer func() { p.Calling = true }()
			ran = true
			use(1)
			t.Stats.Acquisitions++
			t.Stats.Waits.Record(t.World.Now - began)
			p.Sleep(ctx, a.Hold)
			if lost.Noticed && ctx.Err() == nil && t.World.Now-max(lost.At, p.Host.Resumed) > promises.Punctual {
				p.Fail("%s: the lease of Do has ended, but the context of its function has not", p.Name())
			}
			if ctx.Err() != nil {
				t.overruns(p, a, d)
			}
			return nil
		})
	})
	t.note(p, err)
	if d != nil {
		d.Over()
	}
	if err == nil && !ran {
		p.Fail("%s: Do returned nil without having run anything", p.Name())
	}
}

// grip is a lock that is held, whatever kind of lock it is.
type grip struct {
	promises.Holding
	claim    *promises.Claim
	deadline *promises.Deadline // nil without StopWithin
	began    time.Duration      // when the call began that took it; 0: adopted
	asked    <-chan redlock.Request
}

// renewing is how long Extend may wait: for a renewal that is under way, until the
// validity is over, and if that renewal succeeds, for the masters until the new
// validity is over.
func (t *Work) renewing(p *promises.Caller, h *grip, a plan.Action) time.Duration {
	left := max(0, h.Until().Sub(p.Clock().Now()))
	return left + max(left, t.Config.Extended(a))
}

// lock takes an action's lock, and tells the checks.
func (t *Work) lock(p *promises.Caller, ctx context.Context, a plan.Action) (*grip, error) {
	began := t.World.Now
	t.Stats.Calls++
	t.Check.Calls++
	t.mishap(p, a, plan.WhileLocking)
	s := t.Stake(p, a)
	h, err := t.take(p, ctx, a)
	t.Waited(p.Client, began)
	if err != nil {
		t.Check.Over(s.Line)
		if errors.Is(err, redlock.ErrNoQuorum) {
			t.Stats.NoQuorum++
		}
		return nil, err
	}
	t.Stats.Acquisitions++
	t.Stats.Waits.Record(t.World.Now - began)
	t.granted(p.Client)
	return &grip{Holding: h, claim: t.Check.Grant(p.Client, h, s), began: began}, nil
}

func (t *Work) take(p *promises.Caller, ctx context.Context, a plan.Action) (h promises.Holding, err error) {
	if r := t.Config.Rung; r != nil {
		return naive.Locks[r](p, ctx, a.LockNames()[0])
	}
	l := lockerOf(t.Config, handlesOf(p.Client), a, p.Client.PermitsOf(a.LockNames()[0]))
	if a.How == plan.ByTryLock {
		watched := t.Check.Attempts(p, a)
		err = t.Ask(p, "TryLock", 2*t.Config.NodeTimeout, func() (err error) {
			h, err = l.try(ctx)
			return err
		})
		t.Check.Refused(p, watched, err)
		return h, err
	}
	defer t.Check.Wanting(p, ctx, a)()
	p.Call(func() { h, err = l.lock(ctx) })
	return h, err
}
