package waiting

import (
	"errors"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
)

// A master whose messages may have been missed is sent the last ask once more: a repeat. Only
// one repeat is under way to a master: a master that hangs reports missed messages with every
// answer, and would be asked more the more often it answers. If messages are missed while a
// repeat is under way, its answer may be older than they are, so another repeat follows (L33).

// missed repeats the ask at a master that can notify us again. A waiter that polls because no quorum
// could asks anew, to queue.
func (w *Waiter) missed(e event, fx *effects) {
	if w.ask.polls && w.polls == 0 && w.queue.all.hearing.reaches() {
		w.next(e, fx)
		return
	}
	w.repeat(quorum.Only(e.master), e, fx)
}

// repeat sends the last ask to masters once more: their grants may not have reached us.
func (w *Waiter) repeat(masters quorum.Set, e event, fx *effects) {
	a := &w.ask
	switch {
	case w.out.busy:
		w.out.late |= masters
	case e.closed || w.state >= won || a.polls || a.id == "":
	default:
		a.doubted |= masters & a.repeated
		fx.repeat = masters &^ a.repeated
		a.repeated |= fx.repeat
		w.out.busy = fx.repeat != 0
	}
}

// repeated counts the answer to a repeat.
func (w *Waiter) repeated(e event, fx *effects) {
	a, master := &w.ask, quorum.Only(e.master)
	again := a.value == e.value && a.doubted.Has(e.master)
	if a.value == e.value {
		a.repeated, a.doubted = a.repeated&^master, a.doubted&^master
	}
	switch {
	case e.ballot.Vote == quorum.Granted:
		w.granted(e, fx)
	case again:
		w.repeat(master, e, fx)
	default:
		w.revises(e, fx)
	}
}

// revises notes what a master has answered to a repeat, if that changes whether it may grant the
// lock: a master that had failed refuses it, or we have ceased to trust a master since the ask was
// decided. Such a master may have handed us the lock, and that does not count. The outcome of the last ask
// stays what it was: the next ask tells what has become of it.
func (w *Waiter) revises(e event, fx *effects) {
	a := &w.ask
	if w.state != resting || a.id == "" || a.value != e.value {
		return
	}
	distrusted := distrusts(e.ballot)
	if distrusted || e.ballot.Vote == quorum.Refused && a.ballots[e.master].Vote == quorum.Failed {
		e.ballot.Late = true // the outcome was decided without it
		a.record(e.master, e.ballot, e.at)
	}
	if distrusted {
		w.losesHope(fx)
	}
}

// losesHope has a resting waiter give up what it was handed once no quorum can grant the lock any more, as
// after an ask that no quorum has answered (L95), and ask again soon. It does so once for an ask: otherwise
// each further answer would put the next ask off (L98).
func (w *Waiter) losesHope(fx *effects) {
	a := &w.ask
	if a.hopeless || w.state != resting || a.id == "" || !unreachable(a.ballots) {
		return
	}
	a.hopeless = true
	if !w.keepsPlace() {
		w.giveUp(fx)
	}
	fx.timer = pause{w.queue.all.RetryInterval, forever}
}

// distrusts reports whether we do not trust the master that the ballot is of.
func distrusts(b quorum.Ballot) bool { return errors.Is(b.Reply.Err, guard.ErrQuarantined) }

// unreachable reports whether the masters that failed leave no quorum.
func unreachable(ballots []quorum.Ballot) bool {
	tally := quorum.NewTally(len(ballots))
	for _, b := range ballots {
		tally.Count(b.Vote)
	}
	return tally.Unreachable()
}
