package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// The caller of Inspect has gone. Who reads on would do so for as long as the master has
// pages, and readers that are renewed come again and again.
func TestL49_nobody_reads_on_for_a_caller_that_has_gone(t *testing.T) {
	master := &scripted{addr: "master"}
	c, err := redlock.New([]node.Node{master}, redlock.WithClock(clock.NewMock()), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page := func() {
		master.next(t, wire.OpRead).answer(wire.Reply{Value: []any{
			nil, int64(-2), int64(0), int64(0), int64(1), []byte(""), []byte(""), []any{}, []byte("r 1 1"),
			[]byte("a/bcd/1:0"), []byte(""), int64(1000),
		}})
	}
	within, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		_, err := c.Inspect(within, "orders")
		over <- err
	}()
	page()
	page()
	cancel()
	select {
	case err := <-over:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Inspect returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Inspect goes on")
	}

	page()

	master.mustNotBeAsked(t)
}
