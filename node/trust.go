package node

import (
	"sync/atomic"

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
