package redlock_test

import (
	"context"
	"testing"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// One master answers with errors and one is away: the third alone does not serve the waiter, which must
// not keep it from others.
func TestL84_a_fair_waiter_that_no_quorum_may_serve_keeps_its_place_nowhere(t *testing.T) {
	_, masters, c := lookedAt(t)
	within, giveUp := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders", redlock.Fair()).Lock(within)
		over <- err
	}()
	failed := func(m *looked, why error) wire.Reply {
		return wire.Reply{Err: &wire.Error{Node: m.addr, Op: wire.OpAcquire, Err: why}}
	}

	masters[0].next(t, wire.OpAcquire).answer(failed(masters[0], wire.Server("ODD")))
	masters[1].next(t, wire.OpAcquire).answer(wire.Reply{Value: int64(1)})
	masters[2].next(t, wire.OpAcquire).answer(failed(masters[2], node.ErrDown))

	masters[1].next(t, wire.OpRelease)
	giveUp()
	mustBe(t, arrival(t, "the end of the call", over), context.Canceled)
}
