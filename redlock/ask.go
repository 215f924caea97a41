package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/quorum"
)

// ask is one registration of a waiter at the masters and all that is known of it. It
// lives until the next one: what belongs to an ask cannot be taken for what belongs to
// another (L31).
//
// Invariant: only the grants of the last ask count. Every ask has a value of its own,
// and takes back, at each master, the grant of the ask before.
//
// A master of which messages may have been missed is asked once more, by one repeat at a
// time: a master that hangs reports missed messages with every answer, and would be asked
// more the more often it answers. If messages are missed while a repeat is under way, its
// answer may be older than they are, so another repeat follows (L33).
type ask struct {
	id    string // of the waiter; empty: nothing was asked yet, or the ask is given up
	n     int    // of the ask
	value string // id and n
	polls bool   // a plain attempt, without a place in the queue
	open  bool   // not decided yet
	soon  bool   // its claim wants to ask again soon
	spent bool   // a majority came to nothing, and a second question may have taken grants back

	sent     drift.Instant
	trip     time.Duration   // how long it took to be decided
	first    drift.Instant   // when, at the earliest, a master granted the lock
	granted  quorum.Set      // masters that did, for this ask
	called   quorum.Set      // masters that notified us that it is our turn to ask
	repeated quorum.Set      // masters that have not answered a repeat yet
	doubted  quorum.Set      // those of them of which messages may have been missed since
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

// outbox holds the work that waits until an ask or repeat was handed to all nodes.
// No command of a waiter overtakes that ask: if the ask could not be sent afterwards, the
// release of both would be taken for a release without anything to release (L32).
type outbox struct {
	busy bool       // an ask or repeat is being handed to the nodes
	due  bool       // ask again, when the ask under way is decided, too
	owed string     // an abandoned value, to be released after the ask is sent
	late quorum.Set // masters to be asked once more
}
