package redlock

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Fenced gives every lease of this lock a fencing token, Lease.Token: a number that is
// higher than that of every lease before it. A resource that refuses tokens lower than
// the highest it has seen is safe even from a holder that was paused and does not know
// yet that it lost the lock (S7, S8); see Fence. All clients that use the lock must
// have it fenced.
//
// Tokens are unique and rise whatever clocks and networks do, as long as the masters
// keep their counters. A master follows no client's clock that is more than a day
// ahead of its own. If counters are lost, tokens still rise as long as the clients'
// wall clocks differ by less than the restart guard. A counter lives for a week after
// its last change.
//
// Several leases of a Semaphore are held at the same time; each has one token for all
// its permits. No two leases have the same token. It is higher than that of every
// lease that was returned before the call began; and of two leases that had the same
// permit, the later has the higher.
func Fenced() interface {
	MutexOption
	MultiOption
	SemaphoreOption
} {
	return fencedOption{change: func(o *lockOptions) { o.fenced = true }}
}

// tokens is the part of a claim that obtains a fencing token.
//
// Every master that grants raises its counter, at least to the client's clock, and
// answers with the new value. The token is the highest value of a majority. A master
// is committed once its counter stepped from below the token to it while it stored our
// value: by its grant, or by a raise. The claim holds once a majority is committed.
//
// Invariant: each master steps to a token exactly once. Two majorities share a master,
// and there the later lease's step is above the earlier one's: so tokens are unique,
// and rise in the order in which the lock was held. Counting a master that did not
// grant would break that order (S37), and counting a master whose counter was there
// already would give a token twice (S30).
type tokens struct {
	clock   clock.Clock
	token   atomic.Uint64 // zero until a majority granted
	highest uint64        // counter that we have seen
}

func newTokens(c *Client) tokens {
	return tokens{clock: c.clock}
}

// proposal is the least counter that we want: our clock in microseconds, so that usually
// all masters step to the same value in one round, wherever their counters stand.
func (k *tokens) proposal() uint64 {
	return max(uint64(max(k.clock.Now().UnixMicro(), 1)), k.highest+1)
}

func (k *tokens) fencingToken() uint64 { return k.token.Load() }

// settle reads the token from the counters of the masters that granted; a counter of zero
// is that of a master that did not. It returns the question to ask, with the command that
// raise makes, until a majority is committed.
func (k *tokens) settle(counters []uint64, raise func(token uint64) *wire.Command) quorum.Question {
	token := slices.Max(counters)
	k.token.Store(token)
	k.highest = max(k.highest, token)
	q := quorum.Question{}
	for i, counter := range counters {
		switch counter {
		case 0:
			q.Absent |= quorum.Only(i)
		case token:
			q.Granted |= quorum.Only(i)
		}
	}
	if q.Granted.Len() < quorum.Size(len(counters)) {
		q.Command = raise(token)
	}
	return q
}

// counters appends the counter of each master that granted the lock, and zero for the
// others.
func counters(dst []uint64, ballots []quorum.Ballot) []uint64 {
	for _, b := range ballots {
		counter := uint64(0)
		if b.Vote == quorum.Granted {
			counter = wire.CounterOf(b.Reply)
		}
		dst = append(dst, counter)
	}
	return dst
}

// fencing is one claim to a fenced Mutex: that to a plain one, and a counter beside it at
// every master.
type fencing struct {
	*exclusive
	tokens
}

func (f *fencing) Acquire(value string, ttl time.Duration) *wire.Command {
	if f.fair {
		return wire.FencedFairAsk(f.key, f.queue, value, 0, ttl, f.proposal())
	}
	return wire.FencedAcquire(f.key, f.queue, value, ttl, f.proposal())
}

func (f *fencing) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return wire.FencedAsk(f.key, f.queue, value, ticket, stay, f.proposal())
}

func (f *fencing) extend(value string, ttl time.Duration) *wire.Command {
	return wire.FencedExtend(f.key, f.queue, value, ttl, f.token.Load())
}

func (f *fencing) repair(value string, ttl time.Duration) *wire.Command {
	return wire.FencedRepair(f.key, f.queue, value, ttl, f.token.Load())
}

func (f *fencing) release(value string, ttl time.Duration) *wire.Command {
	if f.token.Load() == 0 {
		return f.exclusive.release(value, ttl)
	}
	return wire.FencedRelease(f.key, f.queue, value, ttl, f.token.Load())
}

// Judge is described at claim.
func (f *fencing) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	switch op {
	case wire.OpAcquire, wire.OpAsk:
		_, refused := wire.FencedRefusal(r)
		if f.fair && !refused {
			_, refused = wire.FairRefusal(r)
		}
		return taken(wire.CounterOf(r) > 0, refused)
	}
	return f.exclusive.Judge(op, r)
}

// agree is described at agreeing.
func (f *fencing) agree(value string, _ time.Duration, ballots []quorum.Ballot) (quorum.Question, agreement, error) {
	var few [16]uint64
	return f.settle(counters(few[:0], ballots), func(token uint64) *wire.Command {
		return wire.FencedRaise(f.key, f.queue, value, token)
	}), nil, nil
}

// ErrStale: the resource has seen a higher token.
var ErrStale = errors.New("stale fencing token")

// Fence is the resource's side of fencing, for a resource in this process. It
// remembers the highest token of each resource and refuses lower ones, so that a
// holder that was paused beyond the end of its lease can do no harm (S7, S8). The zero
// value is ready. A Fence is safe for concurrent use.
//
// A resource such as a database or a Redis key keeps its token itself: see the
// examples. The check and the write must be one step there.
type Fence struct {
	mu      sync.Mutex
	highest map[string]uint64
}

// Check accepts a token that is at least as high as every token before, and otherwise
// returns ErrStale. Zero is not a token, and is refused.
func (f *Fence) Check(resource string, token uint64) error {
	if token == 0 {
		return fmt.Errorf("redlock: fence %q: %w: 0 is no token", resource, ErrStale)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if highest := f.highest[resource]; token < highest {
		return fmt.Errorf("redlock: fence %q: %w: token %d, and %d was seen", resource, ErrStale, token, highest)
	}
	if f.highest == nil {
		f.highest = make(map[string]uint64)
	}
	f.highest[resource] = token
	return nil
}

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
const perCount = wire.MaxPermits

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

func (f *fencedPermit) Acquire(value string, ttl time.Duration) *wire.Command {
	return f.keys.Take(wire.OpAcquire, value, ttl, 0, f.total, f.n, f.start, f.proposal())
}

func (f *fencedPermit) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
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
	f.highest = max(f.highest, mostCounted(ballots))
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

// mostCounted returns how far the masters have counted, and so the token at most.
func mostCounted(ballots []quorum.Ballot) (most uint64) {
	for _, b := range ballots {
		most = max(most, countedTo(b.Reply))
	}
	return most
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
