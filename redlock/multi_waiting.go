package redlock

import (
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// reconsider is described at reconsidering.
func (s *several) reconsider(ballots []quorum.Ballot, called bool) (soon bool) {
	switch i := s.had(ballots); {
	case called && s.waitFor > 0:
		s.waitFor = node.WaitForFirst
	case called:
	case i > 0:
		s.waitFor = i
		return s.waited == node.WaitForEach // others must not wait for us meanwhile
	default:
		s.waitFor = node.WaitForEach
		return true
	}
	return false
}

// had returns a lock that another client may have, if all masters that said so or have
// not answered store it for that client; zero if there is none.
func (s *several) had(ballots []quorum.Ballot) int {
	type holder struct {
		lock int64
		name string
	}
	pending, most, lock := 0, 0, int64(0)
	count := map[holder]int{}
	for _, b := range ballots {
		if b.Vote == quorum.Pending {
			pending++
		}
		f := fields(b.Reply)
		if b.Vote != quorum.Refused || len(f) != 5 {
			continue
		}
		i, _ := f[3].(int64)
		name, _ := f[4].([]byte)
		if foreign, _ := f[1].(int64); i < 1 || i > int64(len(s.names)) || len(name) == 0 && foreign == 0 {
			continue
		}
		h := holder{i, string(name)}
		if count[h]++; count[h] > most {
			most, lock = count[h], i
		}
	}
	if most+pending < quorum.Size(len(ballots)) || most == 0 {
		return 0
	}
	return int(lock)
}
