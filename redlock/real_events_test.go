package redlock_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// of returns the events of a node so far.
func (d *diary) of(addr string) (found []redlock.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Node == addr {
			found = append(found, e)
		}
	}
	return found
}

func kindsOf(events []redlock.Event) (kinds []redlock.EventKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// await waits until the events of a node are these, and returns the last one.
func (d *diary) await(t *testing.T, s *redistest.Server, want ...redlock.EventKind) redlock.Event {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("told of %q, want %q", kindsOf(d.of(s.Addr())), want)
		}
	}()
	eventually(t, "all events of a node are told", func() bool { return slices.Equal(kindsOf(d.of(s.Addr())), want) })
	return d.of(s.Addr())[len(want)-1]
}

// mustBeQuarantine checks what a quarantine is told with.
func mustBeQuarantine(t *testing.T, e redlock.Event, hold time.Duration, why string) {
	t.Helper()
	if e.Kind != node.EventQuarantined || e.Rest <= 0 || e.Rest > 2*hold || !errors.Is(e.Err, guard.ErrQuarantined) || !strings.Contains(e.Err.Error(), why) {
		t.Errorf("told of %+v", e)
	}
}

func TestReal_events_of_each_node_in_their_order(t *testing.T) {
	t.Parallel()
	const hold = 2 * second
	ms := startMasters(t, 5)
	declareNew(t, redistest.URLs(ms))
	ms[0].Kill()
	events := &diary{}
	c := ms.client(t, redlock.WithRestartGuard(hold), redlock.WithObserver(events.observe))
	if e := events.await(t, ms[0], node.EventDisconnected); !errors.Is(e.Err, node.ErrDown) || !strings.Contains(e.Err.Error(), "refused") {
		t.Errorf("told of %+v", e)
	}
	for _, s := range ms[1:] {
		if e := events.await(t, s, node.EventConnected); e.Err != nil || e.Lock != "" {
			t.Errorf("told of %+v", e)
		}
	}

	ms[1].Kill()
	if e := events.await(t, ms[1], node.EventConnected, node.EventDisconnected); !errors.Is(e.Err, node.ErrDown) {
		t.Errorf("told of %+v", e)
	}
	do(t, ms[2], "FLUSHALL")
	ms[0].Restart()
	ms[1].Restart()
	ms[3].Restart()

	restarted := []redlock.EventKind{node.EventDisconnected, node.EventQuarantined, node.EventConnected, node.EventAdmitted}
	connected := []redlock.EventKind{node.EventConnected}
	events.await(t, ms[0], restarted...)
	events.await(t, ms[1], slices.Concat(connected, restarted)...)
	events.await(t, ms[2], node.EventConnected, node.EventQuarantined, node.EventAdmitted)
	events.await(t, ms[3], slices.Concat(connected, restarted)...)
	mustBeQuarantine(t, events.of(ms[2].Addr())[1], hold, "lost its marker")
	mustBeQuarantine(t, events.of(ms[3].Addr())[2], hold, "lost its marker")

	c.Close()
	events.await(t, ms[3], slices.Concat(connected, restarted)...)
	events.await(t, ms[4], node.EventConnected)
}

// A master that hangs is silent first, and then its connection is given up.
func TestReal_events_of_a_master_that_hangs(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	events := &diary{}
	ms.client(t, redlock.WithNodeTimeout(500*time.Millisecond), redlock.WithObserver(events.observe))
	events.await(t, ms[0], node.EventConnected)

	ms[0].Stop()
	eventually(t, "the connection is given up", func() bool {
		e := events.of(ms[0].Addr())
		return e[len(e)-1].Kind == node.EventDisconnected
	})
	e := events.of(ms[0].Addr())
	if silent := e[len(e)-2]; silent.Kind != node.EventSilent || !errors.Is(silent.Err, node.ErrSilent) {
		t.Errorf("told of %q, and before the end of %+v", kindsOf(e), silent)
	}
	ms[0].Continue()
	eventually(t, "it is connected again", func() bool {
		again := events.of(ms[0].Addr())
		return again[len(again)-1].Kind == node.EventConnected
	})
}

// Nodes that are given tell as those of Dial do. One that hangs for less long than
// its connection is given answers again.
func TestReal_events_of_nodes_that_are_given(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	var nodes []node.Node
	for _, s := range ms {
		m, err := node.Open(s.URL(), node.Config{MaxAge: 30 * time.Second, MaxSilence: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, m)
	}
	events := &diary{}
	c, err := redlock.New(nodes, redlock.WithObserver(events.observe))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	events.await(t, ms[0], node.EventConnected)

	ms[0].Stop()
	events.await(t, ms[0], node.EventConnected, node.EventSilent)
	ms[0].Continue()
	events.await(t, ms[0], node.EventConnected, node.EventSilent, node.EventAnswering)
}
