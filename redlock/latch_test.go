package redlock_test

import (
	"context"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A client that stood still may have the answer of a master that has lost its memory
// since: it confirms nothing, and nothing is written back by it.
func TestLatch_believes_no_answer_that_was_asked_for_long_ago(t *testing.T) {
	everybody := wire.Reply{Value: []any{int64(1), []byte("1 2 3 4"), int64(1)}}
	for name, test := range map[string]struct {
		call   func(ctx context.Context, l *redlock.Latch) error
		answer wire.Reply
	}{
		"Count":  {func(ctx context.Context, l *redlock.Latch) error { _, err := l.Count(ctx); return err }, everybody},
		"Arrive": {func(ctx context.Context, l *redlock.Latch) error { return l.Arrive(ctx, "a") }, wire.Reply{Value: int64(1)}},
	} {
		for wait, want := range map[bool]error{false: nil, true: redlock.ErrNoQuorum} {
			t.Run(name, func(t *testing.T) {
				mock, returned := clock.NewMock(), make(chan error, 1)
				call := func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
					returned <- test.call(ctx, c.Latch("jobs", 2))
					return nil, redlock.ErrTaken
				}
				masters, _ := scriptedClient(t, call, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second))
				for i, m := range masters[:3] {
					asked := m.next(t, wire.OpCommit)
					if i == 2 && wait {
						mock.Add(3 * second)
					}
					asked.answer(test.answer)
				}
				mustBe(t, arrival(t, "it returns", returned), want)
			})
		}
	}
}

// The same of what was read in two questions, because no majority knew who had arrived:
// nobody is told of it.
func TestLatch_writes_nothing_back_that_was_read_long_ago(t *testing.T) {
	mock, returned := clock.NewMock(), make(chan error, 1)
	call := func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		_, err := c.Latch("jobs", 2).Count(ctx)
		returned <- err
		return nil, redlock.ErrTaken
	}
	masters, _ := scriptedClient(t, call, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second))
	some := wire.Reply{Value: []any{[]byte("a")}}
	for _, answer := range []wire.Reply{{Value: []any{int64(1), []byte("1 2 3 4"), int64(0)}}, some} {
		for _, m := range masters {
			m.next(t, wire.OpCommit).answer(answer)
		}
	}
	for i, m := range masters {
		asked := m.next(t, wire.OpCommit)
		if i == len(masters)-1 {
			mock.Add(3 * second)
		}
		asked.answer(some)
	}
	mustBe(t, arrival(t, "it returns", returned), redlock.ErrNoQuorum)
}

// Where the restart guard is short, an answer is old sooner: after half of it.
func TestLatch_believes_no_answer_older_than_half_a_restart_guard(t *testing.T) {
	mock, returned := clock.NewMock(), make(chan error, 1)
	call := func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		returned <- c.Latch("jobs", 2).Arrive(ctx, "a")
		return nil, redlock.ErrTaken
	}
	masters, _ := scriptedClient(t, call, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second),
		redlock.WithTTL(second), redlock.WithRestartGuard(2*second))
	for i, m := range masters[:3] {
		asked := m.next(t, wire.OpCommit)
		if i == 2 {
			mock.Add(2*second - second/2)
		}
		asked.answer(wire.Reply{Value: int64(1)})
	}
	mustBe(t, arrival(t, "it returns", returned), redlock.ErrNoQuorum)
}
