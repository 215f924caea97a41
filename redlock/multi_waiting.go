package redlock

import (
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// reconsider is described at reconsidering.
func (s *several) reconsider(ballots []quorum.Ballot, called bool) (soon bool) {
	switch i := s.had(ballots); {
	case called && s.waitFor > 0:
		s.waitFor = wire.WaitForFirst
	case called:
	case i > 0:
		s.waitFor = i
		return s.waited == wire.WaitForEach // others must not wait for us meanwhile
	default:
		s.waitFor = wire.WaitForEach
		return true
	}
	return false
}

// had returns the number, from one, of a lock that another client may have at a majority:
// the masters that report this client and the masters that have not answered make one. It
// returns zero otherwise.
func (s *several) had(ballots []quorum.Ballot) int {
	type holder struct {
		lock int
		name string
	}
	pending, most, lock := 0, 0, 0
	count := map[holder]int{}
	for _, b := range ballots {
		if b.Vote == quorum.Pending {
			pending++
		}
		said, ok := wire.ManyRefusal(b.Reply, len(s.names))
		if b.Vote != quorum.Refused || !ok || said.Lock < 0 || said.Holder == "" && !said.Foreign {
			continue
		}
		h := holder{said.Lock, said.Holder}
		if count[h]++; count[h] > most {
			most, lock = count[h], said.Lock
		}
	}
	if most+pending < quorum.Size(len(ballots)) || most == 0 {
		return 0
	}
	return lock + 1
}
