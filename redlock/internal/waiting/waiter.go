// Package waiting is how the callers of one client wait for locks: in a queue of the
// client for each lock, and for the first of them in the queues of the masters. It knows
// neither keys nor leases.
package waiting

import (
	"cmp"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Lock is the lock that a waiter waits for.
type Lock interface {
	ID() string // tells the queues of a client apart
	Name() string
	Options() Options
	NewClaim() Claim
	NewID() string                 // of a waiter; never used before
	Value(id string, n int) string // of the nth ask of a waiter
	Discard(c Claim, value string) // has the masters release the value
	Waits()                        // tells the observer that a caller waits
}

// Options are how the callers of one client wait for the same lock.
type Options struct {
	TTL        time.Duration
	Poll       *Polling // nil: they queue at the masters
	Fair       bool
	AtOnce     bool // each registers by its first ask, without an attempt before
	Registered int  // so many of them are registered at the masters; the others wait behind them
}

// Polling is how often a waiter looks if it does not queue.
type Polling struct{ Min, Max time.Duration }

// More registered callers would cost the masters more, and serve no caller earlier (L46).
// In the order of a fair lock only registered callers have a place before those of other
// clients.
const (
	MostRegistered = 64  // callers of one client, for a lock that many may hold
	MostFair       = 256 // for a fair lock
)

// Claim is what one caller asks the masters for.
type Claim interface {
	quorum.Judge
	// Acquire takes the lock at one node. Ask does, or queues a waiter for it.
	Acquire(value string, ttl time.Duration) *wire.Command
	Ask(value string, ticket int64, stay time.Duration) *wire.Command
}

// ticketed is a claim whose ticket is agreed with the masters.
type ticketed interface {
	// Enqueue is the first ask, with the least ticket that the waiter wants.
	Enqueue(value string, least int64, stay time.Duration) *wire.Command
}

// explaining is a claim that can tell more from the ballots than that the lock is taken.
type explaining interface {
	// Why returns an error with the reason, or nil.
	Why(ballots []quorum.Ballot) error
}

// reconsidering is a claim that decides how its asks wait, from the known state of the
// other clients that want the lock.
type reconsidering interface {
	// Reconsider decides how to wait from the answers to the last ask, or from a
	// majority having called the waiter since. It reports whether to ask again soon.
	Reconsider(ballots []quorum.Ballot, called bool) (soon bool)
}

// Waiter is one call of Lock that waits for its turn.
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
// effects (step.go), and the goroutine that posted carries them out. The caller's
// goroutine sleeps until the waiter has won or ends.
//
// Invariant: from the state taking on, nothing changes that the caller reads without the
// mutex: the value, instants and ballots of the last ask, failed, votes, told and rounds.
type Waiter struct {
	lock  Lock
	claim Claim
	queue *queue
	ready chan struct{} // holds one wake-up
	came  int64         // microseconds since 1970 by the masters' clocks

	// Guarded by the mutex of the queues.
	state   state
	polls   int  // how many more asks poll: all if the caller wants that, otherwise some, after the masters refused to queue it
	told    bool // the observer knows that it waits
	ask     ask  // the last one
	out     outbox
	timer   drift.Timer // fires when it is time to ask again
	backoff backoff
	ticket  int64           // came, or the ticket agreed with the masters; zero: not yet
	failed  error           // the outcome of the last ask or attempt
	votes   []quorum.Ballot // of the last ask that was decided
}

// Ready wakes the caller.
func (w *Waiter) Ready() <-chan struct{} { return w.ready }

// Woke is called by the caller when it is awake. If the lock is won the caller makes a lease
// of it, and calls Failed or Leave. If the wait has ended it calls Leave.
func (w *Waiter) Woke() (wins, ended bool) {
	s := w.post(event{kind: callerWoke}).state
	return s == taking, s == finished
}

// Won returns what the masters granted: they were asked at the instant sent, and none
// granted before the instant first. The key's TTL at a master that granted the lock is
// the rest of the registration.
func (w *Waiter) Won() (c Claim, value string, sent, first drift.Instant) {
	return w.claim, w.ask.value, w.ask.sent, w.ask.first
}

// Failed notes why the won lock did not become a lease.
func (w *Waiter) Failed(why error) { w.post(event{kind: leaseFailed, why: why}) }

// Leave ends the wait. A caller without a lease gives up.
func (w *Waiter) Leave(leased bool) { w.post(event{kind: callerLeft, leased: leased}) }

// Asked returns how often the masters were asked, their last answers, and whether the
// observer knows that the caller waits.
func (w *Waiter) Asked() (times int, votes []quorum.Ballot, told bool) {
	return w.backoff.rounds, w.votes, w.told
}

// Last returns the outcome of the last ask, or of the attempt before all asks: nil if a
// majority granted the lock, too late, or the first ask is not decided.
func (w *Waiter) Last() error {
	switch {
	case w.failed == errTooLate, w.failed == nil && w.backoff.rounds > 0:
		return nil
	case w.failed != nil:
		return w.failed
	}
	return cmp.Or(w.queue.all.Why(w.lock), ErrTaken) // by callers of this client
}

// post has an event happen to the waiter. It is the only place that takes the mutex.
// Close waits for the effects of the event even after the caller has left: every ask that
// is sent must be followed by its release (L17).
func (w *Waiter) post(e event) effects {
	qs := w.queue.all
	defer qs.Leave()
	e.closed = !qs.Enter()
	qs.mu.Lock()
	fx := w.advance(e)
	qs.mu.Unlock()
	w.do(fx)
	return fx
}

// advance is a step, and those of its effects that must happen under the same mutex: if two
// steps set the timer in the other order, one of them would be lost. The mutex is held.
func (w *Waiter) advance(e event) effects {
	qs, before := w.queue.all, w.ask.id
	e.now = qs.Watch.Now()
	fx := w.step(e)
	switch p := fx.timer; {
	case p == never:
		qs.Timers.Cancel(&w.timer)
	case p.around > 0:
		qs.Timers.Set(&w.timer, min(qs.Jitter(p.around), p.atMost), w)
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
		qs.known[w.ask.id] = known{waiter: w}
	}
	if e.kind == callerLeft {
		if _, ok := qs.known[before]; ok && e.leased {
			// The lease has no need of the waiter.
			qs.known[before] = known{turn: turn{yields: &w.queue.yields, since: e.now.Earlier(w.ask.trip)}}
		}
		fx.heir = w.queue.remove(w)
	}
	return fx
}

// command is the last ask as a command. The mutex is held.
func (w *Waiter) command() *wire.Command {
	a, ttl := &w.ask, w.lock.Options().TTL
	if a.id == "" {
		a.id = w.lock.NewID()
	}
	if a.value == "" {
		a.value = w.lock.Value(a.id, a.n)
	}
	t, ok := w.claim.(ticketed)
	switch {
	case a.polls:
		return w.claim.Acquire(a.value, ttl)
	case ok && w.ticket == 0:
		return t.Enqueue(a.value, w.came, ttl)
	}
	return w.claim.Ask(a.value, w.ticket, ttl)
}

// do does what follows from a step, in the order of the effects.
func (w *Waiter) do(fx effects) {
	qs := w.queue.all
	if fx.polls&deaf != 0 {
		qs.Logger.Warn("redlock: too few masters have confirmed that they tell this client what its waiters are given, so locks are polled", "name", w.lock.Name())
	}
	if fx.polls&barred != 0 {
		qs.Logger.Warn("redlock: not allowed to queue at the masters, so the lock is polled", "name", w.lock.Name())
	}
	if fx.heir != nil {
		fx.heir.post(event{kind: isFirst})
	}
	if fx.forget != "" {
		w.lock.Discard(w.claim, fx.forget)
	}
	if fx.waits {
		w.lock.Waits()
	}
	switch {
	case fx.ask:
		qs.Members.Ask(quorum.Question{Command: fx.command, Judge: w.claim, Watcher: &watch{w, fx.value}, Since: fx.now})
	case fx.repeat != 0:
		w.sendRepeats(fx)
	default:
		return
	}
	w.post(event{kind: askHandedOver})
}

// sendRepeats sends the last ask to masters once more.
func (w *Waiter) sendRepeats(fx effects) {
	cmd := fx.command.Repeated()
	for i, n := range w.queue.all.Members.Nodes() {
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
func (w *Waiter) Fire() { w.post(event{kind: timerFired}) }

// watch follows the round of one ask.
type watch struct {
	waiter *Waiter
	value  string // of the ask
}

// Decided is described at quorum.Watcher.
func (a *watch) Decided(r *quorum.Round) {
	e := event{kind: roundDecided, value: a.value, votes: r.Ballots(nil)}
	if r.Outcome() != quorum.Won {
		e.why, e.waited = WhyLost(a.waiter.claim, r), !r.Tally().Conclusive()
	}
	a.waiter.post(e)
	a.waiter.queue.all.pace.decided(!r.Tally().Unreachable())
}

// Late is described at quorum.Watcher.
func (a *watch) Late(_ *quorum.Round, i int, b quorum.Ballot) {
	a.waiter.post(event{kind: masterAnswered, master: i, value: a.value, ballot: b})
}
