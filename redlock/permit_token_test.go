package redlock_test

import (
	"context"
	"slices"
	"testing"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// tryPermit has a caller try for one fenced permit of five.
func tryPermit(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
	return c.Semaphore("sem", 5, redlock.Fenced()).TryAcquire(ctx, 1)
}

func raisedSlots() wire.Reply { return wire.Reply{Value: int64(1)} }

func movedTo(slots string, count int64) wire.Reply {
	return wire.Reply{Value: []any{[]byte(slots), count}}
}

// mustRaise takes the next question, which must be to raise the counter.
func (s *scripted) mustRaise(t *testing.T, slots, count string) question {
	t.Helper()
	raise := s.next(t, wire.OpCommit)
	if raise.cmd.Script != wire.ScriptPermitRaise || !slices.Equal(raise.cmd.Args[1:], []string{slots, count}) {
		t.Errorf("%s is asked %s %q", s.addr, raise.cmd.Script.Name, raise.cmd.Args)
	}
	return raise
}

// A token is made of a count that a majority has which gave the same slots: the
// others are raised, and who has not answered is not asked, nor counted.
func TestPermit_token_is_what_a_majority_has_counted(t *testing.T) {
	masters, got := scriptedClient(t, tryPermit)
	var asked []question
	for _, m := range masters {
		asked = append(asked, m.next(t, wire.OpAcquire))
	}
	for i, count := range []int64{5, 7, 6} {
		asked[i].answer(countedSlots("3", "1", count))
	}
	raises := []question{masters[0].mustRaise(t, "3", "7"), masters[2].mustRaise(t, "3", "7")}
	asked[3].answer(countedSlots("3", "1", 9)) // late
	for _, m := range masters[3:] {
		m.mu.Lock()
		if len(m.open) > 0 {
			t.Errorf("%s, whose grant was not read, is asked %s", m.addr, m.open[0].cmd.Op)
		}
		m.mu.Unlock()
	}
	raises[0].answer(raisedSlots())
	if len(got) > 0 {
		t.Error("a lease before a majority has counted")
	}
	raises[1].answer(raisedSlots())

	lease := arrival(t, "the lease", got)

	if want := uint64(7*wire.MaxPermits + 3); lease.Token() != want {
		t.Errorf("token %d, want %d", lease.Token(), want)
	}
}

// A move counts anew, above all that was seen; what the grants counted before it is
// worth nothing.
func TestPermit_token_of_a_move_is_what_the_move_counted(t *testing.T) {
	masters, got := scriptedClient(t, tryPermit)
	for i, m := range masters {
		own := []string{"4", "1", "2"}[i] // so it moves to 4, which one has given already
		m.next(t, wire.OpAcquire).answer(countedSlots(own, "4", int64(5+i)))
		if i == 2 {
			break
		}
	}
	var moves []question
	for i, m := range masters {
		if i > 2 {
			m.next(t, wire.OpAcquire)
		}
		moves = append(moves, m.next(t, wire.OpCommit))
	}
	slots, proposal := moves[0].cmd.Args[2], moves[0].cmd.Args[5]
	if proposal != "8" {
		t.Errorf("the move proposes %s, want what is above 7", proposal)
	}
	for i, count := range []int64{9, 8, 9} {
		moves[i].answer(movedTo(slots, count))
	}
	masters[1].mustRaise(t, slots, "9").answer(raisedSlots())

	lease := arrival(t, "the lease", got)

	if token := lease.Token(); token/wire.MaxPermits != 9 {
		t.Errorf("token %d", token)
	}
}

// A grant that has counted nothing is no answer: nothing tells what comes after it.
// What it gave is given back.
func TestPermit_token_counts_no_grant_without_a_count(t *testing.T) {
	masters, got := scriptedClient(t, tryPermit)
	for i, answer := range []wire.Reply{
		countedSlots("3", "1", 7), countedSlots("3", "1", 7), countedSlots("3", "1", 0), noSlots(), noSlots(),
	} {
		masters[i].next(t, wire.OpAcquire).answer(answer)
	}

	for _, m := range masters[:3] {
		m.next(t, wire.OpRelease)
	}
	if len(got) > 0 {
		t.Error("a lease of two of five masters")
	}
}

// S65: a master gave the permit that a majority gave, and had missed a Resize. The permit is
// held by then. A master that has heard of fewer permits meanwhile must not take it back, and
// counts as far as the token, also where it believes no clock.
func TestS65_a_held_permit_is_not_taken_back_by_a_master_that_missed_a_Resize(t *testing.T) {
	masters, got := scriptedClient(t, tryPermit)
	for i, resize := range []int64{1, 1, 0} {
		masters[i].next(t, wire.OpAcquire).answer(wire.Reply{Value: []any{[]byte("3"), []byte("1"), int64(7), resize}})
	}
	arrival(t, "the lease", got)

	if repair := masters[2].next(t, wire.OpRepair); !slices.Equal(repair.cmd.Args[5:], []string{"7", "held"}) {
		t.Errorf("it is asked %q", repair.cmd.Args)
	}
}

// What a master cannot have given is no grant, and its client does not panic.
func TestPermits_that_cannot_be_are_no_grant(t *testing.T) {
	for _, odd := range []string{"", "x", "3,3", "1,2", "99", "-1"} {
		masters, got := scriptedClient(t, tryPermit)
		for _, m := range masters {
			m.next(t, wire.OpAcquire).answer(countedSlots(odd, "", 7))
		}
		for _, m := range masters {
			m.next(t, wire.OpRelease)
		}
		if len(got) > 0 {
			t.Errorf("a lease of the slots %q", odd)
		}
	}
}
