package node

import (
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
	rest     time.Duration          // of the quarantine, as last seen
	reason   string                 // of the quarantine, or the unknown facts
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
	rest, reason := t.rest, t.reason
	v = t.guard.Look(e)
	t.rest, t.reason = v.Rest, v.Reason
	switch {
	case v.Rest > 0 && (rest == 0 || v.Reason != reason || v.Lost):
		news = EventQuarantined
	case v.Rest == 0 && rest > 0:
		news = EventAdmitted
	}
	t.reconsider()
	var accepted *string
	if marker := t.guard.Accepted(); marker != "" {
		accepted = &marker
	}
	t.accepted.Store(accepted)
	return v, news, v.Rest == 0 && v.Reason != "" && v.Reason != reason
}
