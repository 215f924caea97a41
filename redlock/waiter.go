package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// waiter is one call of Lock that waits for its turn.
//
// It registers at every master by an ask. A release hands the lock to the waiter with
// the lowest ticket, at each master separately. The waiter counts the masters: it
// holds the lock once a majority has given it. No attempt follows the release, so the
// lock changes hands in one round trip: half of one to the masters, half of one back.
//
// Invariant: only what the last ask was given counts. Every ask has a value of its
// own, and gives back what the ask before was given.
//
// A waiter has the same ticket at all masters. A waiter with only a minority asks
// again, which hands the minority to a lower ticket that is queued there. The lowest
// ticket never yields, so a split vote ends (L2).
//
// A waiter acts only in callbacks of nodes and timers; the caller's goroutine sleeps
// until it has won or gives up.
type waiter struct {
	lock   *lock
	claim  claim
	queue  *queue
	came   int64         // microseconds since 1970 by the masters' clocks
	ticket int64         // that, or what was agreed with the masters; zero: not yet
	ready  chan struct{} // holds one wake-up
	timer  drift.Timer   // when to ask again

	// Guarded by the mutex of the queues.
	id       string        // the same in all its values
	n        int           // of the last ask
	value    string        // of the last ask; empty: none was sent
	sent     drift.Instant // when the last ask was sent
	trip     time.Duration // how long the ask before took to be decided
	open     bool          // the last ask is not decided yet
	sending  int           // asks on their way to the nodes
	owed     []string      // values to be discarded when they have arrived there
	due      bool          // ask again as soon as it is
	spent    bool          // what the last ask was given is worth nothing
	turns    quorum.Set    // masters that said it is our turn, since the last ask
	missing  quorum.Set    // masters that were asked again for the last ask, and have not answered
	doubted  quorum.Set    // those of them where messages may have been missed since
	later    quorum.Set    // masters to be asked again when no ask is on its way any more
	given    quorum.Set    // the masters that gave us the lock for the last ask
	first    drift.Instant // when at the earliest one of them did
	rounds   int           // asks that were sent
	told     bool          // the observer knows that it waits
	splits   int           // asks in a row that got a minority
	before   int           // so, before the last one, which may get it late
	misses   int           // asks in a row that found no quorum
	looks    int           // asks in a row that found the lock held, by Polling
	hurries  bool          // its claim had it ask again soon
	barred   bool          // its caller or the masters have it do without a queue
	polls    bool          // the last ask did without a queue
	slept    bool          // it was not first come, first served
	over     bool          // it has won or given up: nothing is sent any more
	hopeless bool          // no other ask will end differently than the last
	reached  bool          // a majority gave us the last ask that was decided, whatever became of it
	paced    bool          // it asks when its turn comes; see pace
	listed   quorum.Set    // masters that it asks again when its turn comes; see ear
	ballots  []quorum.Ballot
	earlier  []quorum.Ballot // those before a message that came before the last ask was decided; nil: none came
	lastFail error           // what the last ask came to
	undone   *Error          // why the attempt failed, or what the last ask was given came to nothing
}

// wait returns when the waiter has the lock or the caller's context ends.
func (w *waiter) wait(k *call) (*Lease, error) {
	c, ctx := w.lock.client, k.ctx
	defer w.tell(k)
	if !w.leads() {
		w.tellWaiting()
	}
	for {
		err := c.seams.Wait(ctx, w.ready)
		switch {
		case c.closed.Load():
			return nil, w.failure(ErrClosed)
		case err != nil:
			return nil, w.failure(ended(ctx))
		}
		if why := w.refusal(); why != nil {
			return nil, w.lock.failed("lock", why, w.votes())
		}
		if !w.hasWon() {
			continue // the wake-up was for an ask that came too late
		}
		lease, failed := w.take(ctx)
		if failed == nil || !failed.again() {
			if failed != nil {
				return nil, failed
			}
			return lease, nil
		}
		w.tooLate(failed)
	}
}

// leads reports whether the waiter asks the masters itself.
func (w *waiter) leads() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.asks()
}

// tellWaiting tells the observer, once, that the waiter has to wait.
func (w *waiter) tellWaiting() {
	if !w.lock.observed() {
		return
	}
	w.queue.all.mu.Lock()
	before := w.told
	w.told = true
	w.queue.all.mu.Unlock()
	if !before {
		w.lock.observe(Event{Kind: LockWaiting})
	}
}

// tell notes the call for the observer.
func (w *waiter) tell(k *call) {
	if !w.lock.observed() {
		return
	}
	votes := w.lock.votes(w.votes())
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	k.attempts, k.votes, k.waited = k.attempts+w.rounds, votes, w.told
}

// hasWon reports whether a majority gave us the lock for the last ask, and no
// ask is on its way to the nodes any more: it could run behind the release of
// the lease.
func (w *waiter) hasWon() bool {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return w.won() && w.sending == 0
}

// refusal returns why the last ask failed if that does not pass, or nil.
func (w *waiter) refusal() error {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !w.hopeless {
		return nil
	}
	return w.lastFail
}

// take turns what the waiter was given into a lease.
func (w *waiter) take(ctx context.Context) (*Lease, *Error) {
	qs := w.queue.all
	qs.mu.Lock()
	value, sent, first := w.value, w.sent, w.first
	// This comes before the lease begins, or an ask could follow its release.
	w.over = true
	qs.won[w.id] = true
	qs.mu.Unlock()
	// Validity counts from the ask: the key's TTL at a master that gave us the
	// lock is what was left of the registration.
	lease, failed := w.hold(ctx, value, sent, first)
	if failed != nil {
		qs.mu.Lock()
		w.over = false
		delete(qs.won, w.id)
		qs.mu.Unlock()
		return nil, failed
	}
	return lease, nil
}

// hold makes a lease of what was asked for at the instant sent and first given at the
// instant first.
func (w *waiter) hold(ctx context.Context, value string, sent, first drift.Instant) (*Lease, *Error) {
	l := w.lock
	if a, ok := w.claim.(agreeing); ok {
		if _, failed := l.agree(ctx, a, value, w.gifts()); failed != nil {
			return nil, failed
		}
	}
	now := l.client.watch.Now()
	if l.tooOld(first, now) {
		return nil, l.failed("lock", ErrExpired, w.votes())
	}
	lease, err := l.lease(ctx, w.claim, value, sent, now)
	if err != nil {
		return nil, l.failed("lock", err, w.votes())
	}
	return lease, nil
}

// tooLate asks again when the validity of what was won had ended, or when the masters
// did not come to agree. What the last ask was given does not count any more, even if
// the answer comes only now: a second question may have taken it back.
func (w *waiter) tooLate(failed *Error) {
	qs := w.queue.all
	qs.mu.Lock()
	w.undone, w.reached = failed, false
	w.given, w.spent = 0, true
	qs.mu.Unlock()
	w.askAgain()
}

// askAgain sends the next ask: now, or when the one under way is decided and has been
// given to all nodes. One that overtook it would be followed by it, and if that could
// not be sent, the release would be taken for one that has nothing to release (L32).
// Close waits for it even if its caller does not any more: what it sends must be followed
// by its release (L17).
func (w *waiter) askAgain() {
	c, qs := w.lock.client, w.queue.all
	defer c.leave()
	if !c.enter() {
		return
	}
	qs.mu.Lock()
	if w.over || w.won() {
		qs.mu.Unlock()
		return
	}
	if w.open || w.sending > 0 {
		w.due = true
		qs.mu.Unlock()
		return
	}
	if !qs.pace.may(w) {
		qs.mu.Unlock()
		return
	}
	deaf, news := qs.hearing.look(c.members.Nodes(), c.members.Need(), c.watch.Now())
	w.polls = w.barred || deaf
	discard := ""
	if w.polls && w.value != "" {
		// Without a queue a release gives an attempt back. It may be late, and must find
		// nothing of the next attempt.
		discard = w.giveUp()
	}
	w.begin()
	a := &asked{w, w.value}
	q := quorum.Question{Command: w.command(), Judge: w.claim, Watcher: a, Since: w.sent}
	w.sending++
	qs.mu.Unlock()
	if news {
		c.opt.logger.Warn("redlock: too few masters have confirmed that they tell this client what its waiters are given, so locks are polled", "name", w.lock.name)
	}
	w.discard(discard)
	c.members.Ask(q)
	w.handedOver()
}

// giveUp returns the value to be discarded now that the waiter does not need it any
// more: the last one, or none as long as an ask is on its way to the masters, which
// must not run behind its own release. The mutex is held.
func (w *waiter) giveUp() (discard string) {
	discard, w.value, w.given = w.value, "", 0
	delete(w.queue.all.asking, w.id)
	if w.sending > 0 {
		w.owed, discard = append(w.owed, discard), ""
	}
	return discard
}

// handedOver notes that an ask has been given to the nodes, and does what had to wait for
// that: it discards what was given up meanwhile, and asks again.
func (w *waiter) handedOver() {
	qs := w.queue.all
	qs.mu.Lock()
	w.sending--
	var owed []string
	var later quorum.Set
	again := w.sending == 0 && w.due && !w.open
	if w.sending == 0 {
		owed, w.owed = w.owed, nil
		later, w.later = w.later, 0
		if w.won() {
			w.notify()
		}
	}
	qs.mu.Unlock()
	for _, value := range owed {
		w.discard(value)
	}
	if again {
		w.askAgain() // this asks every master, also those to be asked again
		return
	}
	for i := range w.lock.client.members.Nodes() {
		if later.Has(i) {
			w.missed(i, nil)
		}
	}
}

// discard has the masters forget a value, if there is one.
func (w *waiter) discard(value string) {
	if value != "" {
		w.lock.discard(w.claim, value, nil)
	}
}

// begin starts the next ask. The mutex is held.
func (w *waiter) begin() {
	c := w.lock.client
	if w.value == "" {
		w.id, w.n = w.lock.nextID(), 0
	} else {
		w.n++
	}
	// The timer was set for the ask before: it would have another follow this one at once.
	c.timers.Cancel(&w.timer)
	w.queue.all.asking[w.id] = w
	w.value = w.lock.valueOf(w.id, w.n)
	w.rounds++
	w.sent = c.watch.Now()
	w.open, w.due, w.spent, w.given, w.turns = true, false, false, 0, 0
	w.missing, w.doubted = 0, 0
	w.earlier = nil
}

// command is the last ask as a command. The mutex is held.
func (w *waiter) command() *node.Command {
	if w.polls {
		return w.claim.acquire(w.value, w.lock.opt.ttl)
	}
	if t, ok := w.claim.(ticketed); ok && w.ticket == 0 {
		return t.enqueue(w.value, w.came, w.lock.opt.ttl)
	}
	return w.claim.ask(w.value, w.ticket, w.lock.opt.ttl)
}

// won reports whether a majority gave us the lock. The mutex is held.
func (w *waiter) won() bool { return w.given.Len() >= w.lock.client.members.Need() }

// hear counts a master's gift that came in a message.
func (w *waiter) hear(i int, value string, gift node.Reply) {
	w.grant(i, value, gift, w.lock.client.watch.Now().Earlier(node.HeardWithin))
}

// grant counts a master's gift to the ask that had this value. The gift was not made
// before the instant at.
func (w *waiter) grant(i int, value string, gift node.Reply, at drift.Instant) {
	if w.granted(i, value, gift, at) {
		w.askAgain()
	}
}

// granted is grant, and reports whether it completes the waiter's ticket, which is
// then to be asked with.
func (w *waiter) granted(i int, value string, gift node.Reply, at drift.Instant) (again bool) {
	c, qs := w.lock.client, w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if w.over || w.spent || w.value != value || w.won() || w.given.Has(i) {
		return false
	}
	if w.sent.Sub(at) > 0 {
		at = w.sent // nor before it was asked for
	}
	if w.given == 0 {
		w.first = at
	}
	w.first = w.first.Or(at)
	if w.open && w.earlier == nil {
		w.earlier = slices.Clone(w.ballots)
	}
	w.record(i, quorum.Ballot{Vote: quorum.Granted, Reply: gift})
	switch {
	case w.won():
		w.wins()
	case w.placedLate():
		return true
	case w.given.Len() == 1 && !w.open:
		// The others follow at once, or not at all.
		w.splits = max(w.splits, w.before+1, 2)
		c.timers.Set(&w.timer, w.minorityPause(), w)
	}
	return false
}

// turn notes that a master says it is the waiter's turn to ask, where the lock is not
// handed over. The waiter asks once a majority has said so, or soon.
func (w *waiter) turn(i int, value string) {
	c, qs := w.lock.client, w.queue.all
	qs.mu.Lock()
	if w.over || w.value != value || w.won() || w.turns.Has(i) {
		qs.mu.Unlock()
		return
	}
	w.turns |= quorum.Only(i)
	called := (w.turns | w.given).Len() >= c.members.Need()
	switch {
	case called:
		w.reconsider(true)
	case w.turns.Len() == 1 && !w.open:
		c.timers.Set(&w.timer, c.jitter(w.splitPause()), w)
	}
	qs.mu.Unlock()
	if called {
		w.askAgain()
	}
}

// isLast reports whether a value is that of the last ask, also where that was given
// up. The mutex is held.
func (w *waiter) isLast(value string) bool {
	id, n, _ := parseAsk(value)
	return id == w.id && n == w.n
}

// record notes what a master said to the last ask. A message may have said that it
// granted before the answer did. The mutex is held.
func (w *waiter) record(i int, b quorum.Ballot) {
	if w.ballots == nil {
		w.ballots = make([]quorum.Ballot, len(w.lock.client.members.Nodes()))
	}
	if b.Vote == quorum.Granted {
		w.given |= quorum.Only(i)
		if b.After == 0 {
			b.After = w.ballots[i].After // a message answers no question
		}
	} else if w.given.Has(i) {
		return
	}
	w.ballots[i] = b
}

// wins wakes the caller, for a majority gave us the lock. The mutex is held.
func (w *waiter) wins() {
	w.reached = true
	w.notify()
}

// notify wakes the caller. The mutex is held.
func (w *waiter) notify() {
	if len(w.ready) == 0 {
		w.ready <- struct{}{}
	}
}

// Fire is the waiter's timer.
func (w *waiter) Fire() { w.askAgain() }

// asked is one ask of a waiter. Its value tells it from all others; its number
// does not, since the numbers begin anew when the waiter has given up an ask.
type asked struct {
	waiter *waiter
	value  string
}

// Decided counts what the masters have answered so far, and plans the next ask.
func (a *asked) Decided(r *quorum.Round) {
	w := a.waiter
	c, qs := w.lock.client, w.queue.all
	defer qs.pace.decided(!r.Tally().Unreachable())
	qs.mu.Lock()
	if w.value != a.value {
		qs.mu.Unlock()
		return
	}
	// This includes an ask that has won by messages: what they gave may be too little.
	w.open, w.trip = false, c.watch.Since(w.sent)
	if w.over {
		qs.mu.Unlock()
		return // it was won by messages, and asks again if that comes to nothing
	}
	if w.spent {
		qs.mu.Unlock()
		w.askAgain()
		return
	}
	var few [16]quorum.Ballot
	for i, b := range r.Ballots(few[:0]) {
		if b.Vote == quorum.Granted {
			w.first = w.sent
		}
		w.record(i, b)
	}
	if w.won() {
		w.wins()
		qs.mu.Unlock()
		return
	}
	w.slept = true
	w.failedBy(whyLost(w.claim, r))
	if !passes(w.lastFail) {
		w.over, w.hopeless = true, true
		w.notify()
		qs.mu.Unlock()
		return
	}
	if w.lastFail == ErrNoQuorum {
		qs.hearing.excuse()
	}
	refused := !w.polls && w.mayNotQueue()
	w.barred, w.polls = w.barred || refused, w.polls || refused
	discard := ""
	if w.lastFail == ErrNoQuorum && !w.keepsPlace() || w.polls {
		// A waiter that cannot reach a quorum keeps nothing from those who can. Neither does
		// one without a queue: nobody would give it the rest.
		discard = w.giveUp()
	}
	again := w.due || !w.polls && !w.placed()
	if !again {
		c.timers.Set(&w.timer, w.pause(), w)
	}
	qs.mu.Unlock()
	w.discard(discard)
	if refused {
		c.opt.logger.Warn("redlock: not allowed to queue at the masters, so the lock is polled", "name", w.lock.name)
	}
	w.tellWaiting()
	if again {
		w.askAgain()
	}
}

// keepsPlace reports whether the waiter stays queued although no quorum has answered its
// ask: so it does in a fair lock as long as a quorum can tell it that it is its turn.
// Masters that answer late have queued it all the same (L42c). The mutex is held.
func (w *waiter) keepsPlace() bool {
	c := w.lock.client
	_, ordered := w.claim.(ticketed)
	return ordered && w.lock.opt.fair && w.queue.all.hearing.count(c.members.Nodes()) >= c.members.Need()
}

// failedBy notes why an attempt or ask failed. The mutex is held.
func (w *waiter) failedBy(err error) {
	w.lastFail, w.undone, w.reached = err, nil, false
	w.queue.wanted = w.queue.wanted || err != ErrNoQuorum
}

// asks reports whether the waiter asks the masters, rather than those before it in the
// queue. The mutex is held.
func (w *waiter) asks() bool {
	first := w.lock.kind.queues().registered
	return first >= len(w.queue.waiters) || slices.Contains(w.queue.waiters[:first], w)
}

// placed agrees on the ticket after the first ask, and reports whether a majority
// has it. The mutex is held.
func (w *waiter) placed() bool {
	t, ok := w.claim.(ticketed)
	if !ok || w.ticket != 0 {
		return true
	}
	ticket, settled := t.ticket(w.came, w.ballots)
	if w.lock.client.seams.Unsafe.ClockTicket && ticket != 0 {
		ticket, settled = w.came, false
	}
	w.ticket = ticket
	return settled || ticket == 0 // too few answered: the first ask again, later
}

// placedLate agrees on the ticket when the first ask was decided before a majority had
// answered, and reports whether to ask with it. The mutex is held.
func (w *waiter) placedLate() (again bool) {
	return w.ticket == 0 && !w.open && !w.polls && !w.placed()
}

// Late counts a master that answered after the decision.
func (a *asked) Late(_ *quorum.Round, i int, b quorum.Ballot) {
	switch b.Vote {
	case quorum.Granted:
		a.waiter.grant(i, a.value, b.Reply, drift.Instant{})
	case quorum.Refused:
		a.waiter.refusedLate(i, a.value, b)
	case quorum.Failed:
		a.waiter.failedLate(i, a.value, b)
	}
}

// failedLate ends the wait when a late answer says why no other ask will end
// differently. The masters that said so first were too few.
func (w *waiter) failedLate(i int, value string, b quorum.Ballot) {
	x, ok := w.claim.(explaining)
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !ok || w.over || w.open || !w.isLast(value) || w.won() {
		return
	}
	w.record(i, b)
	if why := x.why(w.ballots); why != nil && !passes(why) {
		w.lastFail, w.over, w.hopeless = why, true, true
		w.notify()
	}
}

// refusedLate notes where a master has queued us. If the number of masters is even,
// less than a majority have answered when the first ask is decided, and a ticket takes
// a majority. The others may also know who has the lock.
func (w *waiter) refusedLate(i int, value string, b quorum.Ballot) {
	c, qs := w.lock.client, w.queue.all
	qs.mu.Lock()
	if w.over || w.polls || w.open || w.value != value || w.won() {
		qs.mu.Unlock()
		return
	}
	w.record(i, b)
	again := w.placedLate()
	if !again && !w.hurries && w.reconsider(false) {
		w.hurries = true
		c.timers.Set(&w.timer, w.minorityPause(), w)
	}
	qs.mu.Unlock()
	if again {
		w.askAgain()
	}
}

// mayNotQueue reports whether so many masters refuse us the commands of a queue
// that no quorum is left. The mutex is held.
func (w *waiter) mayNotQueue() bool {
	refused := 0
	for _, b := range w.ballots {
		if b.Reply.Err != nil && errors.Is(b.Reply.Err, &node.ServerError{Code: "NOPERM"}) {
			refused++
		}
	}
	return len(w.ballots)-refused < w.lock.client.members.Need()
}

// missed asks one master again: what it gave us may not have reached us. A master that
// hangs calls this with every answer, and would be asked more the more often it
// answers; so it is asked again once at a time for each ask (L31), and once more if it
// may have run that before it gave us what was missed meanwhile (L33). It is not asked
// again before an ask that is on its way to the nodes: if that could not be sent, its
// release would be taken for one that has nothing to release (L32). Then the master calls
// answered, if it is not nil.
func (w *waiter) missed(i int, answered func()) (asked bool) {
	c, qs := w.lock.client, w.queue.all
	defer c.leave()
	if !c.enter() {
		return false
	}
	qs.mu.Lock()
	if w.sending > 0 {
		w.later |= quorum.Only(i)
		qs.mu.Unlock()
		return false
	}
	if w.over || w.polls || w.value == "" || w.won() || w.missing.Has(i) {
		w.doubted |= w.missing & quorum.Only(i)
		qs.mu.Unlock()
		return false
	}
	w.missing |= quorum.Only(i)
	cmd, value, sent := w.command().Repeated(), w.value, c.watch.Now()
	w.sending++
	qs.mu.Unlock()
	c.members.Nodes()[i].Do(cmd, func(r node.Reply) {
		if answered != nil {
			defer answered()
		}
		qs.mu.Lock()
		again := w.value == value && w.doubted.Has(i)
		if w.value == value {
			w.missing, w.doubted = w.missing&^quorum.Only(i), w.doubted&^quorum.Only(i)
		}
		qs.mu.Unlock()
		if r.Err == nil && w.claim.Judge(cmd.Op, r) == quorum.Granted {
			w.grant(i, value, r, sent)
			return
		}
		if again {
			w.missed(i, nil)
		}
	})
	w.handedOver()
	return true
}

// leave ends the waiter's stay: the next caller of this client begins, and if the
// waiter did not get the lock, the masters forget it. Only then does the lock go to
// another waiter.
func (w *waiter) leave(lease *Lease) {
	qs := w.queue.all
	w.lock.client.timers.Cancel(&w.timer)
	qs.mu.Lock()
	w.over = true
	discard := ""
	if lease == nil {
		discard = w.giveUp()
	}
	delete(qs.asking, w.id)
	next := w.queue.remove(w)
	qs.mu.Unlock()
	if next != nil {
		next.askAgain()
	}
	w.discard(discard)
}

// failure describes how the waiting ended, and what stood in the way until then. Both
// are of one moment: the next ask goes on by itself.
func (w *waiter) failure(err error) *Error {
	qs := w.queue.all
	qs.mu.Lock()
	last, undone, reached := w.lastFail, w.undone, w.reached
	ballots := w.ballots
	if w.open && w.earlier != nil && !reached {
		ballots = w.earlier
	}
	ballots = slices.Clone(ballots)
	qs.mu.Unlock()
	e := w.lock.failed("lock", err, ballots)
	switch {
	case reached: // nothing stood in the way: a majority gave the lock, too late
	case undone != nil:
		e.Last, e.Votes = undone.Err, undone.Votes
	case last == nil:
		e.Last = ErrTaken // by callers of this client
	default:
		e.Last = last
	}
	return e
}

// votes returns what the masters answered to the last ask that was decided.
func (w *waiter) votes() []quorum.Ballot {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return slices.Clone(w.ballots)
}

// gifts returns what the masters answered. Only what was given to the last ask is
// Granted.
func (w *waiter) gifts() []quorum.Ballot {
	ballots := w.votes()
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for i := range ballots {
		if ballots[i].Vote == quorum.Granted && !w.given.Has(i) {
			ballots[i].Vote = quorum.Pending
		}
	}
	return ballots
}
