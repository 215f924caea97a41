package redlock

import (
	"context"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// waiter is one call of Lock that waits for its turn.
//
// It registers at every master by an ask. A release grants the lock to the waiter with
// the lowest ticket, at each master separately. The waiter counts the masters: it
// holds the lock once a majority has granted it. No attempt follows the release, so the
// lock changes hands in one round trip: half of one to the masters, half of one back.
//
// A waiter has the same ticket at all masters. A waiter with only a minority asks
// again, which grants the minority to a lower ticket that is queued there. The lowest
// ticket never yields, so a split vote ends (L2).
//
// A waiter is a machine: callbacks of nodes and timers post events, a step decides their
// effects (waiter_step.go), and the goroutine that posted carries them out. The caller's
// goroutine sleeps until the waiter has won or ends.
//
// Invariant: from taking on, nothing changes that the caller reads without the mutex:
// the value, instants and ballots of the last ask, failed, votes, told and rounds.
type waiter struct {
	lock  *lock
	claim claim
	queue *queue
	ready chan struct{} // holds one wake-up
	came  int64         // microseconds since 1970 by the masters' clocks

	// Guarded by the mutex of the queues.
	state   state
	ask     ask // the last one
	out     outbox
	timer   drift.Timer // when to ask again
	backoff backoff
	ticket  int64           // came, or the ticket agreed with the masters; zero: not yet
	barred  bool            // its caller or the masters have it do without a queue
	told    bool            // the observer knows that it waits
	failed  *Error          // the outcome of the last ask; without Votes: see votes
	votes   []quorum.Ballot // of the last ask that was decided
}

// wait returns when the waiter has the lock or the caller's context ends.
func (w *waiter) wait(k *call) (*Lease, error) {
	lease, err := w.await(k.ctx)
	w.post(event{kind: callerLeft, leased: lease != nil})
	if w.lock.observed() {
		k.attempts, k.votes, k.waited = k.attempts+w.backoff.rounds, w.lock.votes(w.votes), w.told
	}
	switch failed, ok := err.(*Error); {
	case err == nil:
		return lease, nil
	case ok:
		return nil, failed
	}
	return nil, w.failure(err)
}

// await returns a lease, or the reason for its absence: ErrClosed, the end of the context,
// or a complete Error.
func (w *waiter) await(ctx context.Context) (*Lease, error) {
	for {
		err := w.lock.client.seams.Wait(ctx, w.ready)
		switch {
		case w.lock.client.closed.Load():
			return nil, ErrClosed
		case err != nil:
			return nil, ended(ctx)
		}
		switch w.post(event{kind: callerWoke}).state {
		case finished:
			return nil, w.lock.failed("lock", w.failed.Err, w.votes)
		case taking:
			// Validity counts from the ask: the key's TTL at a master that granted the lock is what
			// was left of the registration.
			votes := func() []quorum.Ballot { return w.votes }
			lease, _, failed := w.lock.hold(ctx, w.claim, w.ask.value, w.ask.sent, w.ask.first, votes)
			if failed == nil {
				return lease, nil
			}
			w.post(event{kind: leaseFailed, failed: failed})
			if !failed.again() {
				return nil, failed
			}
		}
	}
}

// failure describes how the waiting ended, and what stood in the way until then.
func (w *waiter) failure(err error) *Error {
	e := w.lock.failed("lock", err, w.votes)
	e.Last = ErrTaken // by callers of this client
	if w.failed != nil {
		e.Last = w.failed.Err
		if w.failed.Votes != nil {
			e.Votes = w.failed.Votes
		}
	}
	return e
}

// post has an event happen to the waiter. It is the only place that takes the mutex.
// Close waits for the effects of the event even after the caller has left: every ask that
// is sent must be followed by its release (L17).
func (w *waiter) post(e event) effects {
	c, qs := w.lock.client, w.queue.all
	defer c.leave()
	e.closed = !c.enter()
	qs.mu.Lock()
	fx := w.advance(e)
	qs.mu.Unlock()
	w.do(fx)
	return fx
}

// advance is a step, and what must be one with it: timers that overtook each other would
// be lost. The mutex is held.
func (w *waiter) advance(e event) effects {
	c, qs, before := w.lock.client, w.queue.all, w.ask.id
	e.now = c.watch.Now()
	fx := w.step(e)
	switch p := fx.timer; {
	case p == never:
		c.timers.Cancel(&w.timer)
	case p.around > 0:
		c.timers.Set(&w.timer, min(c.jitter(p.around), p.atMost), w)
	}
	if fx.wake && len(w.ready) == 0 {
		w.ready <- struct{}{}
	}
	if fx.ask || fx.repeat != 0 {
		fx.command = w.command()
		fx.value, fx.now = w.ask.value, e.now
	}
	if w.ask.id != before {
		delete(qs.known, before)
	}
	if fx.ask {
		qs.known[w.ask.id] = w
	}
	if e.kind == callerLeft {
		if _, ok := qs.known[before]; ok && e.leased {
			qs.known[before] = nil // the lease has no need of the waiter
		}
		fx.heir = w.queue.remove(w)
	}
	return fx
}

// command is the last ask as a command. The mutex is held.
func (w *waiter) command() *wire.Command {
	l, a := w.lock, &w.ask
	if a.id == "" {
		a.id = l.values.ID(l.client.nextSeq())
	}
	if a.value == "" {
		a.value = l.values.Of(a.id, a.n)
	}
	t, ok := w.claim.(ticketed)
	switch {
	case a.polls:
		return w.claim.acquire(a.value, l.opt.ttl)
	case ok && w.ticket == 0:
		return t.enqueue(a.value, w.came, l.opt.ttl)
	}
	return w.claim.ask(a.value, w.ticket, l.opt.ttl)
}

// do does what follows from a step, in the order of the effects.
func (w *waiter) do(fx effects) {
	l, c := w.lock, w.lock.client
	if fx.polls&deaf != 0 {
		c.opt.logger.Warn("redlock: too few masters have confirmed that they tell this client what its waiters are given, so locks are polled", "name", l.name)
	}
	if fx.polls&barred != 0 {
		c.opt.logger.Warn("redlock: not allowed to queue at the masters, so the lock is polled", "name", l.name)
	}
	if fx.heir != nil {
		fx.heir.post(event{kind: isFirst})
	}
	if fx.forget != "" {
		l.discard(w.claim, fx.forget, nil)
	}
	if fx.waits {
		l.observe(Event{Kind: LockWaiting})
	}
	switch {
	case fx.ask:
		c.members.Ask(quorum.Question{Command: fx.command, Judge: w.claim, Watcher: &watch{w, fx.value}, Since: fx.now})
	case fx.repeat != 0:
		w.sendRepeats(fx)
	default:
		return
	}
	w.post(event{kind: askHandedOver})
}

// sendRepeats sends the last ask to masters once more.
func (w *waiter) sendRepeats(fx effects) {
	cmd := fx.command.Repeated()
	for i, n := range w.lock.client.members.Nodes() {
		if !fx.repeat.Has(i) {
			continue
		}
		e := &w.queue.all.ears[i]
		e.asked()
		n.Do(cmd, func(r wire.Reply) {
			b := quorum.Ballot{Vote: quorum.Failed, Reply: r}
			if r.Err == nil {
				b.Vote = w.claim.Judge(cmd.Op, r)
			}
			w.post(event{kind: repeatAnswered, master: i, value: fx.value, ballot: b, at: fx.now})
			e.answered()
		})
	}
}

// Fire is the waiter's timer.
func (w *waiter) Fire() { w.post(event{kind: timerFired}) }

// watch follows the round of one ask.
type watch struct {
	waiter *waiter
	value  string // of the ask
}

// Decided is described at quorum.Watcher.
func (a *watch) Decided(r *quorum.Round) {
	e := event{kind: roundDecided, value: a.value, votes: r.Ballots(nil)}
	if r.Outcome() != quorum.Won {
		e.why = whyLost(a.waiter.claim, r)
	}
	a.waiter.post(e)
	a.waiter.queue.all.pace.decided(!r.Tally().Unreachable())
}

// Late is described at quorum.Watcher.
func (a *watch) Late(_ *quorum.Round, i int, b quorum.Ballot) {
	a.waiter.post(event{kind: masterAnswered, master: i, value: a.value, ballot: b})
}
