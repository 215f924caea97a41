package redlock

import (
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// leaseVote reads the reply to a command about a lease that is held. These replies are
// the same in every kind of lock. Not ok: op is another one.
func leaseVote(op wire.Op, r wire.Reply) (vote quorum.Vote, ok bool) {
	switch op {
	case wire.OpExtend:
		return extended(r), true
	case wire.OpRelease:
		return released(r), true
	}
	return quorum.Failed, false
}

// extended reads the reply to an extend: 1 extended, 0 absent, -1 another value.
func extended(r wire.Reply) quorum.Vote {
	switch state, ok := wire.KeyStateOf(r); {
	case !ok, state == wire.Ours && r.Young:
		return quorum.Failed // a young master says nothing yet, neither way (S35)
	case state == wire.Ours:
		return quorum.Granted
	}
	return quorum.Refused
}

// released reads the reply to a release. If the value was deleted or is absent, or
// another value is there, the node no longer stores ours.
func released(r wire.Reply) quorum.Vote {
	if _, ok := wire.KeyStateOf(r); ok {
		return quorum.Granted
	}
	return quorum.Failed
}

// done judges a command that a master has either done, and answers with 1, or not.
type done struct{}

// Judge implements quorum.Judge.
func (done) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	state, ok := wire.KeyStateOf(r)
	return taken(ok && state == wire.Ours, ok)
}

// isAbsent reads the reply to an extend or release.
func isAbsent(r wire.Reply) bool {
	state, ok := wire.KeyStateOf(r)
	return ok && state == wire.Absent
}
