package waiting

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// state is what a waiter waits for.
type state uint8

const (
	parked   state = iota // its turn among the callers of this client; nothing was asked
	resting               // a message or its timer: the last ask is decided
	paced                 // the same, and asks again when the pace of this client allows
	asking                // the decision of the last ask
	won                   // its caller: a majority has granted the lock
	taking                // its caller makes a lease of that
	finished              // nothing: it has a lease, gave up, or its refusal is final
)

// event is what happens to a waiter.
type event struct {
	kind   eventKind
	master int             // whose message or answer came, or was missed
	value  string          // of the ask that this is about
	ballot quorum.Ballot   // what the master said
	at     drift.Instant   // masterGranted: not before then
	votes  []quorum.Ballot // roundDecided; the waiter keeps them
	why    error           // roundDecided: without a majority of grants; leaseFailed
	waited bool            // roundDecided: by a timeout
	leased bool            // callerLeft: with a lease

	now    drift.Instant // when it happens
	closed bool          // nothing is sent any more
}

type eventKind uint8

const (
	isFirst        eventKind = iota // its turn among the callers of this client has come
	timerFired                      // its timer
	paceAllows                      // the pace of this client lets it ask
	masterGranted                   // a master says in a message that it granted the lock
	masterNotified                  // a master says that it is our turn to ask
	roundDecided                    // the round of an ask
	masterAnswered                  // a master answered after the decision
	messagesMissed                  // messages of a master may have been missed
	repeatAnswered                  // a master answered a repeat
	askHandedOver                   // an ask or repeat was handed to all nodes
	callerWoke                      // its caller is awake
	leaseFailed                     // the won lock did not become a lease
	callerLeft                      // its caller has a lease, or gives up
	clientClosed                    // the client is closed
)

// effects are what follows from an event, in the order in which it is done.
type effects struct {
	state  state // after the event
	timer  pause
	wake   bool       // the caller
	polls  polled     // tell people that locks are polled, and why
	forget string     // a value to be released at the masters
	waits  bool       // tell the observer that the caller waits
	ask    bool       // send the last ask to all masters
	repeat quorum.Set // send the last ask to these masters once more

	command *wire.Command // the last ask as a command, if it is sent
	value   string        // its value
	now     drift.Instant // when it is sent
	heir    *Waiter       // whose turn comes
}

// polled is why a client polls from now on: a set.
type polled uint8

const (
	deaf   polled = 1 << iota // too few masters can notify it
	barred                    // the masters do not let it queue
)

// step is the whole waiter: what an event does to its state, and what follows. It
// neither sends, nor blocks, nor reads a clock. The mutex of the queues is held.
//
// In the table, "afterwards" is when the ask under way is decided, "timer" sets the timer,
// "end" is finished, "forget" has the masters release the last ask, and "the trip" is ask.trip.
//
//	event \ state    parked  resting, paced          asking               won      taking          finished
//	first, timer     ask     ask                     ask afterwards       -        -               -
//	pace allows      -       paced: ask              -                    -        -               -
//	granted          -       count: won, timer       count: won           -        -               -
//	notified         -       count: ask, timer       count: ask afterw.   -        -               -
//	decided          -       -                       won, rest, finished  count    note the trip   note the trip
//	answered late    -       record: ask, timer, end -                    -        -               -
//	missed           -       repeat; polls: ask      repeat; polls: ask   -        -               -
//	repeat answered  -       as granted, repeat, rest as granted, repeat  -        -               -
//	handed over      -       drain the outbox        drain the outbox     wake     drain           drain
//	caller woke      -       -                       -                    take     -               -
//	lease failed     -       -                       -                    -        ask, end        -
//	caller left      end     end: forget             end: forget          end      end (or lease)  -
//	client closed    end     end: forget             end: forget          end      -               -
func (w *Waiter) step(e event) (fx effects) {
	switch e.kind {
	case isFirst, timerFired:
		w.next(e, &fx)
	case paceAllows:
		if w.state == paced {
			w.state = resting
			w.next(e, &fx)
		}
	case masterGranted:
		w.granted(e, &fx)
	case masterNotified:
		w.notified(e, &fx)
	case roundDecided:
		w.decided(e, &fx)
	case masterAnswered:
		w.answered(e, &fx)
	case messagesMissed:
		w.missed(e, &fx)
	case repeatAnswered:
		w.repeated(e, &fx)
	case askHandedOver:
		w.handedOver(e, &fx)
	case callerWoke:
		if w.state == won && !w.out.busy { // an ask that is not handed over yet could run behind the release of the lease
			w.state = taking
		}
	case leaseFailed:
		w.undone(e, &fx)
	case callerLeft:
		w.end(!e.leased, &fx)
	case clientClosed:
		if w.state < taking { // otherwise Close ends its lease
			w.end(true, &fx)
		}
		fx.wake = true
	}
	if interval := w.queue.all.RetryInterval; w.ask.hopeless && fx.timer.around > interval {
		fx.timer.around = interval
	}
	fx.state = w.state
	return fx
}

// next sends the next ask: now, or when the one under way is decided and was handed to
// all nodes, and no sooner than the pace of the client allows.
func (w *Waiter) next(e event, fx *effects) {
	switch {
	case e.closed || w.state == paced || w.state >= won:
	case w.state == asking || w.out.busy:
		w.out.due = true
	case !w.queue.all.pace.may(w):
		w.state = paced
	default:
		w.begin(e, fx)
	}
}

func (w *Waiter) begin(e event, fx *effects) {
	mute, news := w.queue.all.hearing.look(e.now)
	if news {
		fx.polls |= deaf
	}
	polls := w.polls > 0 || mute
	w.polls = max(0, w.polls-1)
	if polls {
		// Without a queue a release gives an attempt back. It may be late, and must find
		// nothing of the next attempt.
		w.giveUp(fx)
	}
	next := ask{polls: polls, open: true, sent: e.now}
	if w.ask.id != "" {
		next.id, next.n = w.ask.id, w.ask.n+1
	}
	w.ask, w.state, w.out = next, asking, outbox{busy: true}
	w.backoff.rounds++
	fx.ask, fx.timer = true, never // the timer was set for the ask before
}

// granted counts a grant that came in a message, late, or in the answer to a repeat.
func (w *Waiter) granted(e event, fx *effects) {
	a := &w.ask
	if w.state >= won || a.id == "" || a.spent || a.value != e.value || a.granted.Has(e.master) {
		return
	}
	a.room(w.masters())
	a.record(e.master, e.ballot, e.at)
	switch {
	case w.majority(a.granted):
		w.wins(fx)
	case w.state == asking:
	case w.settlesLate():
		w.next(e, fx)
	case a.granted.Len() == 1: // the others follow immediately, or not at all
		w.backoff.splits = max(w.backoff.splits, w.backoff.before+1, 2)
		fx.timer = w.minorityPause(e.now)
	}
}

// notified counts a master that says it is our turn to ask, where the lock is not
// handed over. The waiter asks when a majority has said so, or soon.
func (w *Waiter) notified(e event, fx *effects) {
	a := &w.ask
	if w.state >= won || a.id == "" || a.value != e.value || a.called.Has(e.master) {
		return
	}
	a.room(w.masters())
	a.called |= quorum.Only(e.master)
	switch {
	case w.majority(a.called | a.granted):
		w.reconsiders(true)
		w.next(e, fx)
	case a.called.Len() == 1 && w.state != asking:
		fx.timer = pause{around: w.splitPause(), atMost: forever}
	}
}

// decided counts what the masters have answered so far, and plans the next ask.
func (w *Waiter) decided(e event, fx *effects) {
	a := &w.ask
	if a.value != e.value {
		return
	}
	// This includes an ask that has won by messages: their grants may be too few.
	a.open, a.trip = false, e.now.Sub(a.sent)
	if qs := w.queue.all; !e.waited || a.trip < qs.trip { // a timeout makes it seem longer, never shorter (L80)
		qs.trip = a.trip
	}
	if a.ballots == nil {
		a.ballots = e.votes
	}
	switch {
	case w.state >= taking:
		return
	case a.spent:
		w.state = resting
		w.next(e, fx)
		return
	}
	for i, b := range e.votes {
		w.note(i, b, a.sent)
	}
	if w.majority(a.granted) {
		w.wins(fx)
		return
	}
	w.loses(e, fx)
}

// loses plans the next ask after an ask that was decided without a majority of grants.
func (w *Waiter) loses(e event, fx *effects) {
	a := &w.ask
	w.state, w.votes = resting, a.ballots
	w.fails(e.why)
	if !Passes(e.why) {
		w.end(true, fx)
		return
	}
	if e.why == ErrNoQuorum {
		w.queue.all.hearing.excuse()
	}
	if !a.polls {
		w.checkRights(fx)
	}
	if e.why == ErrNoQuorum && !w.keepsPlace() || a.polls {
		// A waiter that cannot reach a quorum must not block clients that can. Nor must a
		// waiter without a queue: no master would grant it the missing votes later.
		w.giveUp(fx)
	}
	fx.waits, w.told = !w.told, true
	if w.out.due || !a.polls && !w.settled() {
		w.next(e, fx)
		return
	}
	fx.timer = w.rest(e.now)
}

// answered notes what a master answered late. If the number of masters is even, less
// than a majority have answered when the first ask is decided, and a ticket takes a
// majority. The other masters may also report the holder of the lock, that its key ends
// earlier there (L67), or a reason for which every later ask would be refused, too.
func (w *Waiter) answered(e event, fx *effects) {
	a := &w.ask
	if e.ballot.Vote == quorum.Granted {
		w.granted(e, fx)
		return
	}
	if w.state != resting && w.state != paced || a.value != e.value {
		return
	}
	var held time.Duration
	if sleeps := w.state == resting && a.granted|a.called == 0; sleeps {
		held, _ = w.standing()
	}
	w.note(e.master, e.ballot, e.at)
	switch {
	case e.ballot.Vote == quorum.Failed:
		w.failedLate(fx)
		if slices.ContainsFunc(a.ballots, distrusts) {
			w.losesHope(fx)
		}
	case e.ballot.Vote != quorum.Refused || a.polls || a.id == "":
	case w.settlesLate():
		w.next(e, fx)
	case !a.soon && w.reconsiders(false):
		a.soon = true
		fx.timer = w.minorityPause(e.now)
	case held > 0:
		if now, _ := w.standing(); now < held {
			fx.timer = w.untilFree()
			fx.timer.atMost = max(0, fx.timer.atMost-a.decidedFor(e.now))
		}
	}
}

// failedLate ends the wait if the last failure explains that every later ask would be refused, too. If it shows
// that the masters do not let us queue, the waiter polls.
func (w *Waiter) failedLate(fx *effects) {
	a := &w.ask
	if x, ok := w.claim.(explaining); ok {
		if why := x.Why(a.ballots); why != nil && !Passes(why) {
			w.fails(why)
			w.end(true, fx)
			return
		}
	}
	if a.polls || a.id == "" {
		return
	}
	if w.checkRights(fx); a.polls && w.state == resting {
		w.giveUp(fx)
		fx.timer = w.untilFree()
	}
}

// handedOver does what had to wait until an ask was handed to all nodes.
func (w *Waiter) handedOver(e event, fx *effects) {
	out := w.out
	w.out = outbox{due: out.due}
	fx.forget, fx.wake = out.owed, w.state == won
	if out.due && w.state != asking {
		w.next(e, fx) // this asks every master, also those to be asked once more
		return
	}
	w.repeat(out.late, e, fx)
}

// undone asks again when the won lock did not become a lease: its validity had ended, or the
// masters did not come to agree. The grants of the last ask no longer count, not even a late
// grant: a second question may have taken it back.
func (w *Waiter) undone(e event, fx *effects) {
	a := &w.ask
	w.failed = e.why
	a.spent = true
	w.state = resting
	if a.open {
		w.state = asking
	}
	if e.closed || !Passes(w.queue.all.Reason(e.why)) { // Close has come when the caller was awake
		w.end(true, fx)
		return
	}
	w.next(e, fx)
}

// wins wakes the caller, for a majority granted the lock.
func (w *Waiter) wins(fx *effects) {
	w.state, w.votes = won, w.ask.ballots
	fx.wake = !w.out.busy
}

// fails notes what an ask or attempt came to.
func (w *Waiter) fails(why error) {
	w.failed = why
	w.queue.wanted = w.queue.wanted || w.queue.all.Reason(why) != ErrNoQuorum
}

// end is the end of the wait.
func (w *Waiter) end(forget bool, fx *effects) {
	if w.state == won {
		w.failed = errTooLate
	}
	w.state, fx.timer, fx.wake = finished, never, true
	if forget {
		w.giveUp(fx)
	}
}
