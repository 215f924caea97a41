package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Fair serves waiters for this lock in the order of their arrival: a waiter
// that a majority of the masters had queued before another Lock began gets the lock
// first, as long as it lives and a majority can notify it. A client without the SUBSCRIBE
// permission has no place in the queue. The masters queue the first 256 callers of each
// client, and its other callers wait behind these. A waiter that dies delays the others
// by a TTL at most.
// All clients that use the lock must have it fair: others take it whenever it is free.
func Fair() MutexOption { return fairOption{change: func(o *lockOptions) { o.fair = true }} }

// A fair lock differs from an unfair one in two ways. The first ask takes the lock
// only if it has no waiters. And every master queues a newcomer behind all waiters
// that it knows: the highest of its places at a majority becomes its ticket at all
// masters.
//
// Invariant: once a majority has queued A with its ticket, each B that begins later
// has a higher ticket, or none, at a master of that majority.

func (e *exclusive) enqueue(value string, least int64, stay time.Duration) *wire.Command {
	return wire.FairAsk(e.key, e.queue, value, least, stay)
}

func (f *fencing) enqueue(value string, least int64, stay time.Duration) *wire.Command {
	return wire.FencedFairAsk(f.key, f.queue, value, least, stay, f.proposal())
}

// ticket is described at ticketed.
func (e *exclusive) ticket(least int64, ballots []quorum.Ballot) (ticket int64, settled bool) {
	answered, agreed := 0, 0
	ticket = least
	for _, b := range ballots {
		if b.Vote == quorum.Granted || b.Vote == quorum.Refused {
			answered++
			ticket = max(ticket, place(b))
		}
	}
	if answered < quorum.Size(len(ballots)) {
		return 0, false
	}
	for _, b := range ballots {
		if b.Vote == quorum.Refused && place(b) == ticket {
			agreed++
		}
	}
	return ticket, agreed >= quorum.Size(len(ballots))
}

// place reads where a master has queued us.
func place(b quorum.Ballot) int64 {
	said, _ := wire.FairRefusal(b.Reply)
	return said.Ticket
}
