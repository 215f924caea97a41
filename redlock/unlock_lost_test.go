package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// S54: an operator has deleted the lock of client 1 at two masters of three, and client 2
// has it. Whichever masters answer first, Unlock of client 1 says that it was lost.
func TestReal_S54_Unlock_of_a_lost_lease_never_says_nil(t *testing.T) {
	masters := startMasters(t, 3)
	first, second := masters.client(t), masters.client(t)
	for i := range 30 {
		name := fmt.Sprint("orders-", i)
		held := lock(t, first.Mutex(name, redlock.NoRenew()))
		eventually(t, "all masters store it", func() bool { return !slices.Contains(masters.values(t, name), "") })
		do(t, masters[i%3], "DEL", name)
		do(t, masters[(i+1)%3], "DEL", name)
		next := lock(t, second.Mutex(name))

		mustBe(t, held.Unlock(ctx), redlock.ErrLost)

		unlocks(t, next)
	}
}

// S54: what the answers to a release say, in the order of the masters. The clock stands
// still where all have answered.
func TestS54_Unlock_says_nil_when_a_majority_has_deleted_the_lock(t *testing.T) {
	const deleted, absent, foreign = int64(1), int64(0), int64(-1)
	for _, c := range []struct {
		answers []any // nil: down, "": hung
		want    error
	}{
		{[]any{deleted, deleted, deleted}, nil},
		{[]any{foreign, deleted, deleted}, nil},
		{[]any{nil, deleted, deleted}, nil},
		{[]any{"", deleted, deleted}, nil},
		{[]any{deleted, foreign, foreign}, redlock.ErrLost},
		{[]any{deleted, absent, foreign}, redlock.ErrLost},
		{[]any{absent, absent, deleted}, redlock.ErrLost},
		{[]any{absent, absent, ""}, redlock.ErrLost},
		{[]any{deleted, foreign, nil}, redlock.ErrNoQuorum}, // it may have been lost, or not
		{[]any{deleted, foreign, ""}, redlock.ErrNoQuorum},
		{[]any{deleted, nil, nil}, redlock.ErrNoQuorum},
		{[]any{deleted, "", ""}, redlock.ErrNoQuorum},
		{[]any{foreign, absent, deleted, deleted, deleted}, nil},
		{[]any{deleted, deleted, foreign, absent, foreign}, redlock.ErrLost},
		{[]any{deleted, deleted, foreign, absent, nil}, redlock.ErrNoQuorum},
	} {
		ms := newMasters(t, len(c.answers))
		client, links := ms.client()
		lease := mustLock(t, client.Mutex("orders", redlock.NoRenew()))
		for i, l := range links {
			switch c.answers[i] {
			case nil:
				l.set(down)
			case "":
				l.set(hung)
			default:
				l.says = map[wire.Op]any{wire.OpRelease: c.answers[i]}
			}
		}
		unlocked := make(chan error, 1)
		go func() { unlocked <- lease.Unlock(ctx) }()
		var err error
		for range 1000 {
			select {
			case err = <-unlocked:
			case <-time.After(time.Millisecond):
				ms.clk.Add(time.Millisecond)
				continue
			}
			break
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.answers, err, c.want)
		}
	}
}
