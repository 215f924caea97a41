package redlock_test

import (
	"context"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A master that extended the value a moment ago may have lost its memory since: what
// was asked for long ago is no lease, however long its TTL is.
func TestAdopt_believes_no_answer_that_was_asked_for_long_ago(t *testing.T) {
	for wait, want := range map[bool]error{false: nil, true: redlock.ErrExpired} {
		mock, returned := clock.NewMock(), make(chan error, 1)
		call := func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			lease, err := c.Mutex("orders", redlock.NoRenew()).Adopt(ctx, "crashed/aaaa/1:0")
			returned <- err
			return lease, err
		}
		masters, _ := scriptedClient(t, call, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second), redlock.WithTTL(60*second))
		for i, m := range masters[:3] {
			asked := m.next(t, wire.OpExtend)
			if i == 2 && wait {
				mock.Add(3 * second)
			}
			asked.answer(wire.Reply{Value: int64(1)})
		}
		mustBe(t, arrival(t, "it returns", returned), want)
	}
}
