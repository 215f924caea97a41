package redlock

import (
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// leaseVote reads the reply to a command about a lease that is held. These replies are
// the same in every kind of lock. Not ok: op is another one.
func leaseVote(op node.Op, r node.Reply) (vote quorum.Vote, ok bool) {
	switch op {
	case node.OpExtend:
		return extended(r), true
	case node.OpRelease:
		return released(r), true
	}
	return quorum.Failed, false
}

// extended reads the reply to an extend: 1 extended, 0 absent, -1 another value.
func extended(r node.Reply) quorum.Vote {
	switch r.Value {
	case int64(1):
		if r.Young {
			return quorum.Failed // it says nothing yet, neither way (S35)
		}
		return quorum.Granted
	case int64(0), int64(-1):
		return quorum.Refused
	}
	return quorum.Failed
}

// released reads the reply to a release. If the value was deleted or is absent, or
// another one is there, the node does not hold ours any more.
func released(r node.Reply) quorum.Vote {
	if node.Releases(r.Value) {
		return quorum.Granted
	}
	return quorum.Failed
}

// isAbsent reads the reply to an extend or release.
func isAbsent(r node.Reply) bool { return r.Err == nil && r.Value == int64(0) }
