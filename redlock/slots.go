package redlock

import (
	"cmp"
	"slices"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

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
