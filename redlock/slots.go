package redlock

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// These are the numbers of fields in the replies to Take, and to Move.
const (
	takenFields   = 4
	reportFields  = 5 // and what is taken
	refusedFields = 3
	movedFields   = 2
)

// granted reads which slots a master gave us, if any.
func granted(b quorum.Ballot) []byte {
	f := fields(b.Reply)
	if b.Vote != quorum.Granted || len(f) == 0 {
		return nil
	}
	mine, _ := f[0].([]byte)
	return mine
}

// countedTo reads the counter of a fenced semaphore from a grant, or from the reply
// to a move; zero if that says none.
func countedTo(r node.Reply) uint64 {
	switch f := fields(r); len(f) {
	case takenFields, reportFields:
		return counter(node.Reply{Value: f[2]})
	case movedFields:
		return counter(node.Reply{Value: f[1]})
	}
	return 0
}

// offer reads which slots a master gave us, and which are free there.
func offer(b quorum.Ballot) (mine string, free []int) {
	f := fields(b.Reply)
	switch {
	case b.Vote == quorum.Granted && len(f) >= takenFields:
		return string(granted(b)), slotsOf(text(f[1]))
	case b.Vote == quorum.Refused && len(f) == refusedFields:
		return "", slotsOf(text(f[2]))
	}
	return "", nil
}

// choose returns the slots that are ours or free at the most masters, and at a
// majority at least; among equals, those that the most masters gave us. It returns
// nothing if there are none.
func (p *permit) choose(ballots []quorum.Ballot) string {
	limit := p.limit(ballots)
	if set := given(ballots); set != "" && (limit == p.total || slices.Max(slotsOf(set)) < limit) {
		return set
	}
	var sets []string                     // that we could have
	masters := make([]int, limit)         // that have each slot for us
	there := make([][]bool, len(ballots)) // at each master
	for i, b := range ballots {
		mine, free := offer(b)
		there[i] = make([]bool, limit)
		for _, slot := range append(slotsOf(mine), free...) {
			if slot < limit && !there[i][slot] {
				there[i][slot] = true
				masters[slot]++
			}
		}
		sets = append(sets, mine)
	}
	best, bestRoom, bestGiven := "", quorum.Size(len(ballots))-1, 0
	for _, set := range append(sets, p.likeliest(masters)) {
		room, given := roomFor(slotsOf(set), there), count(sets, set)
		if set != "" && cmp.Or(cmp.Compare(room, bestRoom), cmp.Compare(given, bestGiven)) > 0 {
			best, bestRoom, bestGiven = set, room, given
		}
	}
	return best
}

// given returns the slots that a majority gave us, if there are any.
func given(ballots []quorum.Ballot) string {
	for _, b := range ballots {
		set, n := granted(b), 0
		for _, other := range ballots {
			if bytes.Equal(granted(other), set) {
				n++
			}
		}
		if len(set) > 0 && n >= quorum.Size(len(ballots)) {
			return string(set)
		}
	}
	return ""
}

// likeliest returns the n slots that the most masters have for us.
func (p *permit) likeliest(masters []int) string {
	slots := make([]int, len(masters))
	for i := range slots {
		slots[i] = (p.start + i) % len(slots)
	}
	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(masters[b], masters[a]) })
	if len(slots) < p.n {
		return ""
	}
	return joinSlots(slots[:p.n])
}

// joinSlots writes slots in decimal with commas.
func joinSlots(slots []int) string {
	names := make([]string, len(slots))
	for i, slot := range slots {
		names[i] = strconv.Itoa(slot)
	}
	return strings.Join(names, ",")
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

func count(sets []string, set string) (n int) {
	for _, s := range sets {
		if s == set {
			n++
		}
	}
	return n
}

// slotsOf reads slots in decimal with commas.
func slotsOf(list string) []int {
	if list == "" {
		return nil
	}
	var slots []int
	for name := range strings.SplitSeq(list, ",") {
		if slot, err := strconv.Atoi(name); err == nil && slot >= 0 {
			slots = append(slots, slot)
		}
	}
	return slots
}

// text reads a bulk string.
func text(v any) string {
	b, _ := v.([]byte)
	return string(b)
}
