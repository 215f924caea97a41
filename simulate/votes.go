package simulate

import (
	"errors"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// votes looks at what an error says of the masters. Each that failed says why. An error
// does not say that there is no quorum if a quorum granted, if refusals alone decided,
// or if a quorum was not waited for.
func (t *trial) votes(p *Process, err error) {
	var e *redlock.Error
	if !errors.As(err, &e) || len(e.Votes) == 0 {
		return
	}
	said := map[quorum.Vote]int{}
	for _, v := range e.Votes {
		if v.Vote == quorum.Failed && v.Err == nil {
			p.Fail("%s: %s failed, and nothing says why: %v", p.name, v.Node, err)
		}
		if !v.Late {
			said[v.Vote]++
		}
	}
	if t.config.Lock.IsSemaphore() || !errors.Is(err, redlock.ErrNoQuorum) {
		return
	}
	for _, vote := range []quorum.Vote{quorum.Granted, quorum.Pending, quorum.Refused} {
		size := quorum.Size(len(e.Votes))
		if vote == quorum.Refused {
			size = len(e.Votes) - size + 1 // so many make a quorum of grants impossible
		}
		if said[vote] >= size {
			p.Fail("%s was told that there is no quorum, and %d %s: %v", p.name, said[vote], vote, err)
		}
	}
}
