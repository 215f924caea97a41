package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// L46: where messages may have been missed, no more than sixteen waiters repeat their ask at
// a time (mostRepeats): or the masters answer nobody in time.
func TestL46_no_more_than_sixteen_repeats_are_unanswered_at_a_master(t *testing.T) {
	const callers = 100
	var masters []*scripted
	var nodes []node.Node
	for i := range 3 {
		masters = append(masters, &scripted{addr: fmt.Sprintf("master-%c", 'A'+i)})
		nodes = append(nodes, masters[i])
	}
	c, err := redlock.New(nodes, redlock.WithClock(clock.NewMock()), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed,
		redlock.WithNodeTimeout(10*second), redlock.WithTTL(60*second))
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { c.Mutex(fmt.Sprint("lock", i)).Lock(within) })
	}
	// All are refused, and all wait.
	asked := 0
	eventually(t, "all wait", func() bool {
		for _, m := range masters {
			m.mu.Lock()
			open := m.open
			m.open = nil
			m.mu.Unlock()
			for _, q := range open {
				if q.cmd.Op == wire.OpAsk {
					asked++
					q.answer(stillQueued)
				} else {
					q.answer(wire.Reply{})
				}
			}
		}
		return asked == 3*callers
	})

	// A waiter whose ask is still being handed to the nodes repeats it after that, beyond the sixteen.
	eventually(t, "all asks are handed over", func() bool {
		stacks := make([]byte, 4<<20)
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*waiter).post("))
	})

	masters[0].missed()

	repeats := func() int {
		masters[0].mu.Lock()
		defer masters[0].mu.Unlock()
		return len(masters[0].open)
	}
	eventually(t, "sixteen repeat", func() bool { return repeats() >= 16 })
	time.Sleep(20 * time.Millisecond) // for those that must not
	if n := repeats(); n > 16 {
		t.Errorf("%d repeats are unanswered at one master, want at most 16", n)
	}
	cancel()
	closed := make(chan struct{})
	go func() { all.Wait(); c.Close(); close(closed) }()
	eventually(t, "the end", func() bool {
		for _, m := range masters {
			m.Close()
		}
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}
