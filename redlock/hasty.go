package redlock

import (
	"sync/atomic"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// hasty is the claim of a reader for whom one master is enough: what the others say
// after that counts as yes. It is wrong, for others who write have a majority (S40).
type hasty struct {
	reading
	in atomic.Bool // a master has let it in
}

// Judge is described at claim.
func (h *hasty) Judge(op node.Op, r node.Reply) quorum.Vote {
	vote := h.reading.Judge(op, r)
	if vote == quorum.Granted && op != node.OpRelease {
		h.in.Store(true)
	}
	if vote == quorum.Refused && h.in.Load() {
		return quorum.Granted
	}
	return vote
}
