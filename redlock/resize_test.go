package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// otherNumber is the answer of a master that has another number of permits.
func otherNumber(addr, message string) wire.Reply {
	return wire.Reply{Err: &wire.Error{Node: addr, Err: wire.Server(message)}}
}

// reported is the answer of a master that knows of a Resize: the slots it gave, those
// that are free, and those that are taken.
func reported(mine, free, taken string) wire.Reply {
	return wire.Reply{Value: []any{[]byte(mine), []byte(free), int64(0), int64(20), []byte(taken)}}
}

// A master that is down says so first, and then two that know another number are too
// few. The next one is enough, though the ask is decided.
func TestWaiter_is_told_another_number_of_permits_also_late(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		lease, err := c.Semaphore("sem", 5).Acquire(ctx, 1)
		told <- err
		return lease, err
	})
	var asks []question
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpAsk} {
		for i, m := range masters {
			q := m.next(t, op)
			switch {
			case i == 0:
				q.answer(wire.Reply{Err: &wire.Error{Node: m.addr, Op: op, Err: node.ErrDown}})
			case i < 3:
				q.answer(otherNumber(m.addr, "PERMITS 4"))
			case op == wire.OpAsk:
				asks = append(asks, q)
			}
		}
	}
	if len(told) > 0 {
		t.Fatal("two of five masters are not enough")
	}

	asks[0].answer(otherNumber(masters[3].addr, "PERMITS 4"))

	if err := arrival(t, "the end of the wait", told); !errors.Is(err, redlock.ErrPermits) {
		t.Error(err)
	}
}

// That somebody has one of several locks passes, whatever a master fails with late.
func TestWaiter_for_several_locks_is_not_ended_by_a_late_failure(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		lease, err := c.Multi([]string{"a", "b"}).Lock(ctx)
		told <- err
		return lease, err
	})
	taken := wire.Reply{Value: []any{int64(10000), int64(0), int64(0), int64(1), []byte("other/x/1:0")}}
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpAsk} {
		for i, m := range masters {
			if q := m.next(t, op); i < 3 {
				q.answer(taken)
			} else if op == wire.OpAsk {
				q.answer(wire.Reply{Err: &wire.Error{Node: m.addr, Op: op, Err: wire.Server("NOSCRIPT No matching script.")}})
			}
		}
	}
	if len(told) > 0 {
		t.Fatalf("the wait has ended: %v", <-told)
	}
	masters[0].missed()
	masters[0].next(t, wire.OpAsk)
}

// What is left over from before a Resize to fewer counts by what all masters report
// together, each once: of five permits 1 and 6 are held, so whoever comes gets 0, 2
// and 3.
func TestSlots_that_are_left_over_count_at_all_masters(t *testing.T) {
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Semaphore("sem", 5).TryAcquire(ctx, 3)
	})
	for i, m := range masters[:3] {
		m.next(t, wire.OpAcquire).answer(reported("4,0,2", "3", []string{"1,6", "6", "4,0,2"}[i]))
	}
	var moves []question
	for i, m := range masters {
		if i > 2 {
			m.next(t, wire.OpAcquire)
		}
		moves = append(moves, m.next(t, wire.OpCommit))
	}
	slots := moves[0].cmd.Args[2]
	if in := slices.Sorted(strings.SplitSeq(slots, ",")); !slices.Equal(in, []string{"0", "2", "3"}) {
		t.Errorf("it moves to %s", slots)
	}
	for _, move := range moves[:3] {
		move.answer(movedTo(slots, 0))
	}
	arrival(t, "the lease", got)
}

// As many are left over as there are permits: nobody gets one.
func TestSlots_that_are_left_over_leave_none(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		lease, err := c.Semaphore("sem", 2).TryAcquire(ctx, 1)
		told <- err
		return lease, err
	})
	for i, m := range masters[:3] {
		m.next(t, wire.OpAcquire).answer(reported("0", "", []string{"1", "4", "1"}[i]))
	}
	if err := arrival(t, "the end of the call", told); !errors.Is(err, redlock.ErrTaken) {
		t.Error(err)
	}
}

// A majority gave the same slot, and nobody waits for the others: who gave another one
// takes it back, and who missed the Resize is told.
func TestWho_does_not_agree_with_a_majority_is_moved(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		// The caller looks when all have answered, though the first three decide.
		answered := make(chan struct{})
		slow := seam.Option(seam.Seams{Guarded: true, Unsafe: seam.Unsafe{LongTimeout: true}, Wait: func(ctx context.Context, ready <-chan struct{}) error {
			<-answered
			return seam.Select(ctx, ready)
		}}).(redlock.Option)
		masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			if fenced {
				return tryPermit(ctx, c)
			}
			return c.Semaphore("sem", 5).TryAcquire(ctx, 1)
		}, slow)
		var asked []question
		for _, m := range masters {
			asked = append(asked, m.next(t, wire.OpAcquire))
		}
		asked[0].answer(countedSlots("4", "1", 7))
		asked[4].answer(otherNumber(masters[4].addr, "PERMITS 6"))
		for _, q := range asked[1:4] {
			q.answer(countedSlots("3", "1", 7))
		}
		close(answered)

		lease := arrival(t, "the lease", got)

		for _, i := range []int{0, 4} {
			move := masters[i].next(t, wire.OpRepair)
			if move.cmd.Script != wire.ScriptPermitMove || !slices.Equal(move.cmd.Args[:1], []string{lease.Value()}) || move.cmd.Args[2] != "3" {
				t.Errorf("%s is asked %s %q", masters[i].addr, move.cmd.Script.Name, move.cmd.Args)
			}
		}
	}
}

// All masters are asked how many there are, and then a later Resize comes: it stands.
func TestResize_that_is_overtaken_is_no_success(t *testing.T) {
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		told <- c.Semaphore("sem", 5).Resize(ctx, 6)
		return nil, redlock.ErrTaken
	})
	for _, m := range masters {
		m.next(t, wire.OpRead).answer(wire.Reply{Value: []any{nil, int64(-2)}})
	}
	for _, m := range masters {
		m.next(t, wire.OpCommit).answer(otherNumber(m.addr, "PERMITS 7"))
	}
	if err := arrival(t, "the end of the Resize", told); !errors.Is(err, redlock.ErrPermits) {
		t.Error(err)
	}
}

// The clock of this client is behind that of the client that resized last: the order of a
// Resize is above that of every Resize that a master has reported.
func TestResize_comes_after_those_that_masters_know(t *testing.T) {
	const known = 1 << 52 // microseconds: long after the test
	told := make(chan error, 1)
	masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		told <- c.Semaphore("sem", 5).Resize(ctx, 6)
		return nil, redlock.ErrTaken
	})
	for i, m := range masters {
		reply := wire.Reply{Value: []any{nil, int64(-2)}}
		if i == 0 {
			reply.Value = []any{nil, int64(-2), int64(0), int64(0), int64(0), []byte(fmt.Sprint("5 ", known)), nil, nil}
		}
		m.next(t, wire.OpRead).answer(reply)
	}
	for _, m := range masters {
		q := m.next(t, wire.OpCommit)
		if got := q.cmd.Args[1]; got != fmt.Sprint(known+1) {
			t.Errorf("%s: the order is %s", m.addr, got)
		}
		q.answer(wire.Reply{Value: int64(1)})
	}
	if err := arrival(t, "the end of the Resize", told); err != nil {
		t.Error(err)
	}
}
