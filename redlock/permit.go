package redlock

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// semaphore is the kind of n permits of a semaphore.
type semaphore struct {
	name            string // its id
	keys            node.Permits
	n, total, start int
	separate        bool // each master its own slots
	fenced          bool
	client          *Client
}

func (s *semaphore) claim() claim {
	if s.fenced {
		return &fencedPermit{permit{semaphore: s}, newTokens(s.client)}
	}
	return &permit{semaphore: s}
}

func (s *semaphore) id() string       { return s.name }
func (s *semaphore) label() string    { return "semaphore" }
func (s *semaphore) queues() queueing { return each }

// permit is one claim to n permits.
//
// The permits are slots, each of which is a lock of its own at every master. A
// master grants the first n that are free, and the claim holds when a majority has
// granted the same. If they differ it moves once, to the slots that are its own or
// free at the most masters.
//
// Invariant: from the move on only votes for its slots count. Counting votes for
// any slots would let in more holders than there are permits (S29).
type permit struct {
	*semaphore
	slots atomic.Pointer[string] // in decimal with commas; nil until they are chosen
	order atomic.Int64           // of the Resize by which there are so many permits
}

func (p *permit) acquire(value string, ttl time.Duration) *node.Command {
	return p.keys.Take(node.OpAcquire, value, ttl, 0, p.total, p.n, p.start, 0)
}

func (p *permit) ask(value string, ticket int64, stay time.Duration) *node.Command {
	return p.keys.Take(node.OpAsk, value, stay, ticket, p.total, p.n, p.start, 0)
}

func (p *permit) extend(value string, ttl time.Duration) *node.Command {
	return p.keys.Extend(value, ttl, *p.slots.Load(), p.total, 0)
}

func (p *permit) repair(value string, ttl time.Duration) *node.Command {
	return p.keys.Repair(value, ttl, *p.slots.Load(), p.total, p.order.Load(), 0)
}

func (p *permit) release(value string, ttl time.Duration) *node.Command {
	return p.keys.Release(value, ttl)
}

// Judge is described at claim.
func (p *permit) Judge(op node.Op, r node.Reply) quorum.Vote {
	if vote, ok := leaseVote(op, r); ok {
		return vote
	}
	if op == node.OpCommit {
		return p.moved(r)
	}
	switch len(fields(r)) {
	case takenFields:
		return quorum.Granted
	case refusedFields:
		return quorum.Refused
	}
	return quorum.Failed
}

// moved reads the reply to a move.
func (p *permit) moved(r node.Reply) quorum.Vote {
	switch {
	case r.Value == nil:
		return quorum.Refused
	case len(fields(r)) == movedFields && text(fields(r)[0]) == *p.slots.Load():
		return quorum.Granted
	}
	return quorum.Failed
}

func (p *permit) absent(r node.Reply) bool { return isAbsent(r) }

// agree is described at agreeing.
func (p *permit) agree(value string, ttl time.Duration, ballots []quorum.Ballot) (quorum.Question, agreement, error) {
	q, err := p.settleSlots(value, ttl, ballots, 0)
	return q, nil, err
}

// settleSlots chooses slots. It returns what is to be asked until a majority has given
// them; with a proposal for the counter, if it is fenced.
func (p *permit) settleSlots(value string, ttl time.Duration, ballots []quorum.Ballot, proposal uint64) (quorum.Question, error) {
	wanted := p.choose(ballots)
	if wanted == "" {
		return quorum.Question{}, ErrTaken
	}
	p.slots.Store(&wanted)
	order := int64(0)
	for _, b := range ballots {
		order = max(order, resized(b))
	}
	p.order.Store(order)
	if p.separate {
		return quorum.Question{}, nil
	}
	q := quorum.Question{}
	other := false
	for i, b := range ballots {
		mine := granted(b)
		if string(mine) == wanted {
			q.Granted |= quorum.Only(i)
		}
		other = other || len(mine) > 0 && string(mine) != wanted
	}
	agreed := q.Granted.Len() >= quorum.Size(len(ballots))
	if !agreed || other {
		// Also where a majority agrees: what the others gave us is not for us to
		// keep. Who has not answered yet mostly gives us the same, and otherwise the
		// first renewal takes it back.
		q.Command = p.keys.Move(value, ttl, wanted, p.total, order, proposal)
	}
	return q, nil
}

// why tells that a majority of the masters has another number of permits. A
// minority may not have heard of a Resize.
func (p *permit) why(ballots []quorum.Ballot) error {
	others := map[string]int{}
	for _, b := range ballots {
		var refusal *node.ServerError
		if b.Reply.Err == nil || !errors.As(b.Reply.Err, &refusal) || refusal.Code != "PERMITS" {
			continue
		}
		total := strings.TrimPrefix(refusal.Message, "PERMITS ")
		if others[total]++; others[total] >= quorum.Size(len(ballots)) {
			return fmt.Errorf("%w: the masters have %s, this handle %d", ErrPermits, total, p.total)
		}
	}
	return nil
}
