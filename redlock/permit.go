package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// permitGrant reads which slots a master gave us, if it granted.
func permitGrant(b quorum.Ballot) wire.PermitGrant {
	if b.Vote != quorum.Granted {
		return wire.PermitGrant{}
	}
	g, ok := wire.PermitGrantOf(b.Reply)
	if !ok {
		g, _ = wire.PermitMoveOf(b.Reply)
	}
	return g
}

// offer reads which slots a master gave us, and which are free there.
func offer(b quorum.Ballot) (mine wire.Slots, free []int) {
	if said, ok := wire.PermitRefusal(b.Reply); ok && b.Vote == quorum.Refused {
		return "", said.Free.Numbers()
	}
	g := permitGrant(b)
	return g.Slots(), g.Free().Numbers()
}

// choose returns the slots that are ours or free at the most masters, and at a
// majority at least; among equals, the slots that the most masters gave us. Without such
// slots it returns nothing.
func (p *permit) choose(ballots []quorum.Ballot) wire.Slots {
	limit := p.limit(ballots)
	if set := given(ballots); set != "" && (limit == p.total || slices.Max(set.Numbers()) < limit) {
		return set
	}
	var sets []wire.Slots                 // that we could have
	masters := make([]int, limit)         // that have each slot for us
	there := make([][]bool, len(ballots)) // at each master
	for i, b := range ballots {
		mine, free := offer(b)
		there[i] = make([]bool, limit)
		for _, slot := range append(mine.Numbers(), free...) {
			if slot < limit && !there[i][slot] {
				there[i][slot] = true
				masters[slot]++
			}
		}
		sets = append(sets, mine)
	}
	best, bestRoom, bestGiven := wire.Slots(""), quorum.Size(len(ballots))-1, 0
	for _, set := range append(sets, p.likeliest(masters)) {
		room, given := roomFor(set.Numbers(), there), count(sets, set)
		if set != "" && cmp.Or(cmp.Compare(room, bestRoom), cmp.Compare(given, bestGiven)) > 0 {
			best, bestRoom, bestGiven = set, room, given
		}
	}
	return best
}

// given returns the slots that a majority gave us, if there are any.
func given(ballots []quorum.Ballot) wire.Slots {
	for _, b := range ballots {
		set, n := permitGrant(b).Slots(), 0
		for _, other := range ballots {
			if permitGrant(other).Gives(set) {
				n++
			}
		}
		if set != "" && n >= quorum.Size(len(ballots)) {
			return set
		}
	}
	return ""
}

// likeliest returns the n slots that the most masters have for us.
func (p *permit) likeliest(masters []int) wire.Slots {
	slots := make([]int, len(masters))
	for i := range slots {
		slots[i] = (p.start + i) % len(slots)
	}
	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(masters[b], masters[a]) })
	if len(slots) < p.n {
		return ""
	}
	return wire.SlotsOf(slots[:p.n])
}

// roomFor counts the masters that have all these slots for us.
func roomFor(slots []int, there [][]bool) (n int) {
	for _, has := range there {
		if !slices.ContainsFunc(slots, func(slot int) bool { return slot >= len(has) || !has[slot] }) {
			n++
		}
	}
	return n
}

func count(sets []wire.Slots, set wire.Slots) (n int) {
	for _, s := range sets {
		if s == set {
			n++
		}
	}
	return n
}
