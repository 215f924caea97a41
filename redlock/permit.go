package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// semaphore is the kind of n permits of a semaphore.
type semaphore struct {
	of              string // the semaphore's name
	keys            wire.Permits
	n, total, start int
	fenced          bool
	client          *Client
}

func (s *semaphore) claim() claim {
	if s.fenced {
		return &fencedPermit{permit{semaphore: s}, newTokens(s.client)}
	}
	return &permit{semaphore: s}
}

// kind is that of these permits. Permits for more callers than that cannot be free.
func (s *semaphore) kind() kind {
	id := "permits:" + strconv.Itoa(s.n) + "/" + strconv.Itoa(s.total) + ":" + s.of
	return kind{id: id, label: "semaphore", registered: min(s.total/max(1, s.n), waiting.MostRegistered), claim: s.claim}
}

// permit is one claim to n permits.
//
// The permits are slots, each of which is a lock of its own at every master. A master
// grants the first n free slots, and the claim holds when a majority has granted the
// same. If they differ, the claim moves once, to the slots that are its own or free at
// the most masters.
//
// Invariant: from the move on only votes for its slots count. Counting votes for any
// slots would let in more holders than there are permits (S29).
type permit struct {
	*semaphore
	slots atomic.Pointer[wire.Slots] // nil until they are chosen
	order atomic.Int64               // of the Resize by which there are so many permits
}

func (p *permit) Acquire(value string, ttl time.Duration) *wire.Command {
	return p.keys.Take(wire.OpAcquire, value, ttl, 0, p.total, p.n, p.start, 0)
}

func (p *permit) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return p.keys.Take(wire.OpAsk, value, stay, ticket, p.total, p.n, p.start, 0)
}

func (p *permit) extend(value string, ttl time.Duration) *wire.Command {
	return p.keys.Extend(value, ttl, *p.slots.Load(), p.total, 0)
}

func (p *permit) repair(value string, ttl time.Duration) *wire.Command {
	return p.keys.Repair(value, ttl, *p.slots.Load(), p.total, p.order.Load(), 0)
}

func (p *permit) release(value string, ttl time.Duration) *wire.Command {
	return p.keys.Release(value, ttl)
}

// Judge is described at claim.
func (p *permit) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	if vote, ok := leaseVote(op, r); ok {
		return vote
	}
	if op == wire.OpCommit {
		return p.moved(r)
	}
	g, granted := wire.PermitGrantOf(r)
	if granted {
		return taken(p.fits(g.Slots().Numbers()), false)
	}
	_, refused := wire.PermitRefusal(r)
	return taken(false, refused)
}

// fits reports whether slots may be those of the claim: as many as it wants, each once,
// and each below the number of permits.
func (p *permit) fits(slots []int) bool {
	if len(slots) != p.n {
		return false
	}
	seen := make([]bool, p.total)
	for _, slot := range slots {
		if slot >= p.total || seen[slot] {
			return false
		}
		seen[slot] = true
	}
	return true
}

// moved reads the reply to a move.
func (p *permit) moved(r wire.Reply) quorum.Vote {
	g, ok := wire.PermitMoveOf(r)
	return taken(ok && g.Gives(*p.slots.Load()), ok && g.Gives(""))
}

// agree is described at agreeing.
func (p *permit) agree(value string, ttl time.Duration, ballots []quorum.Ballot) (quorum.Question, agreement, error) {
	q, err := p.settleSlots(value, ttl, ballots, 0)
	return q, nil, err
}

// settleSlots chooses slots. It returns the question to ask until a majority has given
// them; with a proposal for the counter, if it is fenced.
func (p *permit) settleSlots(value string, ttl time.Duration, ballots []quorum.Ballot, proposal uint64) (quorum.Question, error) {
	wanted := p.choose(ballots)
	if wanted == "" {
		return quorum.Question{}, ErrTaken
	}
	p.slots.Store(&wanted)
	order := int64(0)
	for _, b := range ballots {
		order = max(order, permitGrant(b).Resize())
	}
	p.order.Store(order)
	agreed, dissent := dividedOn(wanted, order, ballots)
	q := quorum.Question{Granted: agreed}
	if agreed.Len() >= quorum.Size(len(ballots)) && dissent == 0 {
		return q, nil
	}
	if agreed.Len() < quorum.Size(len(ballots)) {
		q.Command = p.keys.Move(value, ttl, wanted, p.total, order, proposal)
		return q, nil
	}
	// The claim does not wait for masters that do not agree. Most of the masters
	// that have not answered yet do agree; the first renewal moves the slots at
	// the others. The permits are held by now, so that a master which has heard of
	// fewer permits meanwhile does not take them back (S65).
	repair := p.keys.Repair(value, ttl, wanted, p.total, order, mostCounted(ballots))
	for i, n := range p.client.members.Nodes() {
		if dissent.Has(i) {
			n.Do(repair, nobodyAsks)
		}
	}
	return q, nil
}

// dividedOn returns which masters gave us these slots, and which gave us others, that
// are not for us to keep, or missed the Resize of that order.
func dividedOn(wanted wire.Slots, order int64, ballots []quorum.Ballot) (agreed, dissent quorum.Set) {
	for i, b := range ballots {
		g := permitGrant(b)
		if g.Gives(wanted) {
			agreed |= quorum.Only(i)
		}
		if !g.Gives("") && (!g.Gives(wanted) || g.Resize() < order) || otherTotal(b) != "" {
			dissent |= quorum.Only(i)
		}
	}
	return agreed, dissent
}

// why reports that so many masters have another number of permits that a majority
// cannot be had. Fewer may not have heard of a Resize.
func (p *permit) Why(ballots []quorum.Ballot) error {
	others := map[string]int{}
	most, n := "", 0
	for _, b := range ballots {
		if total := otherTotal(b); total != "" {
			n++
			if others[total]++; others[total] > others[most] {
				most = total
			}
		}
	}
	if len(ballots)-n >= quorum.Size(len(ballots)) {
		return nil
	}
	return p.otherNumber(most)
}

func (p *permit) otherNumber(theirs string) error {
	return fmt.Errorf("%w: the masters have %s, this handle %d", ErrPermits, theirs, p.total)
}

// otherTotal reads from a refusal how many permits there are, if the number is the
// reason.
func otherTotal(b quorum.Ballot) string {
	var refusal *wire.ServerError
	if b.Reply.Err == nil || !errors.As(b.Reply.Err, &refusal) || refusal.Code != "PERMITS" {
		return ""
	}
	return strings.TrimPrefix(refusal.Message, "PERMITS ")
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
