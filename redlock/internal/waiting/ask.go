package waiting

import (
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ask is one registration of a waiter at the masters and all that is known of it. It
// lives until the next one: what belongs to an ask cannot be taken for what belongs to
// another (L31).
//
// Invariant: only the grants of the last ask count. Every ask has a value of its own,
// and takes back, at each master, the grant of the ask before.
type ask struct {
	id    string // of the waiter; empty: nothing was asked yet, or the ask is given up
	n     int    // of the ask
	value string // id and n
	polls bool   // a plain attempt, without a place in the queue
	open  bool   // not decided yet
	soon  bool   // its claim wants to ask again soon
	spent bool   // a majority came to nothing, and a second question may have taken grants back

	hopeless bool // no quorum can grant it any more, so the next ask is due after a retry interval

	sent     drift.Instant
	trip     time.Duration   // how long it took to be decided
	first    drift.Instant   // no master granted the lock before
	granted  quorum.Set      // masters that did, for this ask
	called   quorum.Set      // masters that notified us that it is our turn to ask
	repeated quorum.Set      // masters that were sent a repeat and have not answered it yet
	doubted  quorum.Set      // of these, masters whose messages may have been missed since
	ballots  []quorum.Ballot // what each master said; nil: none has said anything
}

// room makes room for what the masters say before the ask is decided.
func (a *ask) room(masters int) {
	if a.ballots == nil {
		a.ballots = make([]quorum.Ballot, masters)
	}
}

// record notes what a master said. A message may have said that it granted before the
// answer did. A grant was not made before the instant at.
func (a *ask) record(i int, b quorum.Ballot, at drift.Instant) {
	if b.Vote != quorum.Granted {
		if !a.granted.Has(i) {
			a.ballots[i] = b
		}
		return
	}
	if a.sent.Sub(at) > 0 {
		at = a.sent // nor before it was asked for
	}
	if a.granted == 0 {
		a.first = at
	}
	if b.After == 0 {
		b.After = a.ballots[i].After // a message answers no question
	}
	a.first, a.granted, a.ballots[i] = a.first.Or(at), a.granted|quorum.Only(i), b
}

// decidedFor is how long ago the ask was decided. The times that masters told count from then.
func (a *ask) decidedFor(now drift.Instant) time.Duration { return now.Sub(a.sent) - a.trip }

// note records what a master said to the last ask.
func (w *Waiter) note(master int, b quorum.Ballot, at drift.Instant) {
	w.ask.record(master, b, at)
	if said, ok := wire.RefusalOf(b.Reply); ok && said.Passes {
		w.queue.yields.saw()
	}
}

// outbox holds the work that waits until an ask or repeat was handed to all nodes, so that no
// other command of the waiter overtakes it. Otherwise a release could be handed to a node before
// the ask that it is for; if the ask could not be sent then, the node would take the release for
// one without anything to release (L32).
type outbox struct {
	busy bool       // an ask or repeat is being handed to the nodes
	due  bool       // ask again, when the ask under way is decided, too
	owed string     // an abandoned value, to be released after the ask is sent
	late quorum.Set // masters to be asked once more
}

// giveUp has the masters forget the last ask, when it was handed to all nodes.
func (w *Waiter) giveUp(fx *effects) {
	a := &w.ask
	switch {
	case a.id == "":
	case w.out.busy:
		w.out.owed = a.value
	default:
		fx.forget = a.value
	}
	a.id, a.granted = "", 0
}

// Reasons why an ask, or an attempt, comes to nothing, and the next may not; see redlock.
var (
	ErrTaken    = errors.New("taken")
	ErrNoQuorum = errors.New("no quorum")
	ErrExpired  = errors.New("expired")

	errTooLate = errors.New("granted too late") // by a majority, when the wait had ended
)

// Passes reports whether the reason why an attempt failed may pass.
func Passes(err error) bool {
	return errors.Is(err, ErrTaken) || err == ErrNoQuorum || err == ErrExpired
}

// WhyLost tells busy from broken: without a quorum of answers nothing is known,
// otherwise another client was first.
func WhyLost(c Claim, r *quorum.Round) error {
	if x, ok := c.(explaining); ok {
		if why := x.Why(r.Ballots(nil)); why != nil {
			return why
		}
	}
	if r.Tally().Unreachable() {
		return ErrNoQuorum
	}
	return ErrTaken
}

func (w *Waiter) masters() int { return len(w.queue.all.Members.Nodes()) }

func (w *Waiter) majority(s quorum.Set) bool { return s.Len() >= w.queue.all.Members.Need() }

// keepsPlace reports whether the waiter stays queued although no quorum has answered its
// ask: so it does in a fair lock as long as a quorum that may have queued it can notify it.
// Masters that answer late or hang may have queued it (L42c), and so may masters that fail for a
// moment, if a majority has queued it before. The others have not: a place at a minority gets the
// waiter nothing, and keeps other clients from the lock (L84). Masters that the client does not trust
// have queued it, but give it nothing for as long as a guard (L95).
func (w *Waiter) keepsPlace() bool {
	if !w.lock.Options().Fair {
		return false
	}
	may, queued := w.queue.all.hearing.notifiers(), w.ticket != 0 && w.backoff.misses < fewMisses
	for i, b := range w.ask.ballots {
		why := b.Reply.Err
		late := errors.Is(why, node.ErrTimeout) || errors.Is(why, node.ErrUnknown) || errors.Is(why, node.ErrSilent)
		if b.Vote == quorum.Failed && !late && (!queued || distrusts(b)) {
			may &^= quorum.Only(i)
		}
	}
	return w.queue.all.hearing.enough(may)
}

// settled agrees on the ticket after the first ask, and reports whether a majority
// has it.
func (w *Waiter) settled() bool {
	if _, ok := w.claim.(ticketed); !ok || w.ticket != 0 {
		return true
	}
	ticket, settled := agreedTicket(w.came, w.ask.ballots)
	w.ticket = ticket
	return settled || ticket == 0 // too few answered: the first ask again, later
}

// settlesLate agrees on the ticket when the first ask was decided before a majority had
// answered, and reports whether to ask with it.
func (w *Waiter) settlesLate() bool { return w.ticket == 0 && !w.ask.polls && !w.settled() }

// reconsiders lets the claim decide how to wait, if it can, and reports whether to ask
// again soon.
func (w *Waiter) reconsiders(called bool) (soon bool) {
	c, ok := w.claim.(reconsidering)
	return ok && c.Reconsider(w.ask.ballots, called)
}

// pollsWhileBarred is how many asks poll before one wants to queue again, after the masters did not let us.
const pollsWhileBarred = 8

// checkRights has the waiter poll for a while if so many masters refuse us the commands of a queue that no
// quorum is left. An operator may have taken a right by mistake, and gives it back (L96).
func (w *Waiter) checkRights(fx *effects) {
	denied, allowed, need := 0, 0, w.queue.all.Members.Need()
	for _, b := range w.ask.ballots {
		switch {
		case b.Vote == quorum.Granted || b.Vote == quorum.Refused:
			allowed++
		case b.Reply.Err != nil && errors.Is(b.Reply.Err, &wire.ServerError{Code: "NOPERM"}):
			denied++
		}
	}
	switch {
	case w.masters()-denied < need:
		w.polls, w.ask.polls = pollsWhileBarred, true
		if !w.queue.barred {
			fx.polls |= barred
		}
		w.queue.barred = true
	case allowed >= need:
		w.queue.barred = false
	}
}

// agreedTicket reads the ticket from the answers; zero if too few answered. It reports
// whether a majority has queued the waiter with that ticket.
func agreedTicket(least int64, ballots []quorum.Ballot) (ticket int64, settled bool) {
	answered, agreed := 0, 0
	ticket = least
	for _, b := range ballots {
		if b.Vote == quorum.Granted || b.Vote == quorum.Refused {
			answered++
			ticket = max(ticket, place(b))
		}
	}
	if answered < quorum.Size(len(ballots)) {
		return 0, false
	}
	for _, b := range ballots {
		if b.Vote == quorum.Refused && place(b) == ticket {
			agreed++
		}
	}
	return ticket, agreed >= quorum.Size(len(ballots))
}

// place reads where a master has queued us.
func place(b quorum.Ballot) int64 {
	said, _ := wire.FairRefusal(b.Reply)
	return said.Ticket
}
