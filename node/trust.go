package node

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// trust is whether a master may vote, by its guard. The mutex of the Master guards it, but
// for the atomic fields.
type trust struct {
	guard    *guard.Guard
	doubt    doubt                  // ask the guard before acquiring, and whether an answer counts
	accepted atomic.Pointer[string] // the marker that votes must come with; nil: none
	look     *wire.Command          // reads the marker
	kept     bool                   // the observer was told of a quarantine, and not of its end
	reason   string                 // of the quarantine, or the unknown facts

	unwritable atomic.Pointer[refusal] // that it stores nothing; nil: it has granted since
}

// refusal is a vote that a master could not give because it stores nothing.
type refusal struct {
	err *wire.Error
	at  time.Duration
}

// refusalCounts is for how long a master is taken to store nothing: without another vote, nobody learns when
// that is over.
const refusalCounts = 10 * time.Second

// voted notes by a vote whether the master stores locks. A master that stores nothing may extend a lease, and
// say that a lock is taken.
func (m *Master) voted(op wire.Op, r wire.Reply) {
	switch {
	case r.Err != nil:
		if unwritable(r.Err) {
			m.trust.unwritable.Store(&refusal{r.Err, m.now()})
		}
	case m.trust.unwritable.Load() != nil && (op.Grants() && !wire.Refused(r) || op == wire.OpAsk):
		m.trust.unwritable.Store(nil)
	}
}

func unwritable(err *wire.Error) bool {
	var said *wire.ServerError
	return errors.As(err.Err, &said) && said.Unwritable()
}

// Stores is described at Storing.
func (m *Master) Stores() error {
	if r := m.trust.unwritable.Load(); r != nil && m.now()-r.at < refusalCounts {
		return r.err
	}
	return nil
}

// reconsider notes whether the guard has to be asked about every vote. A doubt that is
// over stays over until the next look, or until another master raises one.
func (t *trust) reconsider() {
	seen := t.doubt.seen()
	if t.guard.Admit(wire.OpAcquire) != nil || t.guard.Young() {
		t.doubt.raise()
	} else {
		t.doubt.resolve(seen)
	}
}

// judge feeds the guard. It returns what follows, and what of that is news: an event, or
// that something could not be known.
func (t *trust) judge(e guard.Evidence) (v guard.Verdict, news EventKind, unsure bool) {
	reason := t.reason
	v = t.guard.Look(e)
	t.reason = v.Reason
	switch {
	case v.Rest > 0 && (!t.kept || v.Reason != reason || v.Lost):
		news, t.kept = EventQuarantined, true
	case v.Admitted && t.kept:
		news, t.kept = EventAdmitted, false
	}
	t.reconsider()
	var accepted *string
	if marker := t.guard.Accepted(); marker != "" {
		accepted = &marker
	}
	t.accepted.Store(accepted)
	return v, news, v.Rest == 0 && v.Reason != "" && v.Reason != reason
}
