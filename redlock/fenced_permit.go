package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// fencedPermit is a claim to permits that have a fencing token.
//
// All permits of a semaphore have one counter at every master, which other clients
// raise while we hold ours. So a majority need not step to the same value: it must
// have our slots, and have counted as far as the highest of them. The token is made of
// that count and the first of our slots.
//
// Invariant: only masters whose grant of these slots was read are counted. Two leases
// with the same slot share such a master, which gave it to the later one after the
// earlier had counted there: so it counted the later one higher. Two with different
// slots differ by their slots. A claim that begins when a lease is complete finds its
// count at a majority, and counts above it.
type fencedPermit struct {
	permit
	tokens // without the slot
}

// perCount is the number of tokens that a count is divided into: one for each slot.
const perCount = MaxPermits

// coarse is how many microseconds of the clock a count stands for: so tokens fit
// into 63 bits for long.
const coarse = 16

// proposal is the least counter that we want; see tokens.
func (f *fencedPermit) proposal() uint64 {
	return max(uint64(max(f.clock.Now().UnixMicro(), coarse))/coarse, f.highest+1)
}

func (f *fencedPermit) fencingToken() uint64 {
	return f.token.Load()*perCount + uint64(f.slots.Load().Numbers()[0])
}

func (f *fencedPermit) acquire(value string, ttl time.Duration) *wire.Command {
	return f.keys.Take(wire.OpAcquire, value, ttl, 0, f.total, f.n, f.start, f.proposal())
}

func (f *fencedPermit) ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return f.keys.Take(wire.OpAsk, value, stay, ticket, f.total, f.n, f.start, f.proposal())
}

func (f *fencedPermit) extend(value string, ttl time.Duration) *wire.Command {
	return f.keys.Extend(value, ttl, *f.slots.Load(), f.total, f.token.Load())
}

func (f *fencedPermit) repair(value string, ttl time.Duration) *wire.Command {
	return f.keys.Repair(value, ttl, *f.slots.Load(), f.total, f.order.Load(), f.token.Load())
}

// Judge is described at claim.
func (f *fencedPermit) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	if _, ok := wire.KeyStateOf(r); ok && op == wire.OpCommit {
		return done{}.Judge(op, r)
	}
	vote := f.permit.Judge(op, r)
	if (op == wire.OpAcquire || op == wire.OpAsk || op == wire.OpCommit) && vote == quorum.Granted && countedTo(r) == 0 {
		return quorum.Failed
	}
	return vote
}

// agree is described at agreeing.
func (f *fencedPermit) agree(value string, ttl time.Duration, ballots []quorum.Ballot) (quorum.Question, agreement, error) {
	for _, b := range ballots {
		f.highest = max(f.highest, countedTo(b.Reply))
	}
	move, err := f.settleSlots(value, ttl, ballots, f.proposal())
	if err != nil {
		return move, nil, err
	}
	if move.Command == nil {
		return f.settleCount(value, ballots), nil, nil
	}
	move.Granted = 0 // a move counts anew, so every master's count must be read
	return move, func(ballots []quorum.Ballot) quorum.Question { return f.settleCount(value, ballots) }, nil
}

// settleCount is settle among the masters that gave us our slots.
func (f *fencedPermit) settleCount(value string, ballots []quorum.Ballot) quorum.Question {
	slots := *f.slots.Load()
	same := make([]uint64, len(ballots))
	for i, b := range ballots {
		if g := permitGrant(b); g.Gives(slots) {
			same[i] = g.Counter()
		}
	}
	return f.settle(same, func(token uint64) *wire.Command { return f.keys.Raise(value, slots, token) })
}

// countedTo reads the counter from a grant or from the reply to a move; zero if that says
// none.
func countedTo(r wire.Reply) uint64 {
	g, ok := wire.PermitGrantOf(r)
	if !ok {
		g, _ = wire.PermitMoveOf(r)
	}
	return g.Counter()
}
