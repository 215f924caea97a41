package node

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// road is a stub whose every PING takes as long as the road is, on a clock that
// nothing else moves.
type road struct {
	*stub
	clock *clock.Mock
	trips []time.Duration // the last one is for all that follow
	mu    sync.Mutex      // the mock's Add is not for two at once
}

func (r *road) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock.Add(d)
}

func newRoad(t *testing.T, trips ...time.Duration) *road {
	r := &road{clock: clock.NewMock(), trips: trips}
	r.stub = newStub(t, but("PING", func([]string) string {
		r.pass(r.trips[0])
		if len(r.trips) > 1 {
			r.trips = r.trips[1:]
		}
		return "default"
	}))
	return r
}

// reconnect breaks the connection and waits for the next.
func (r *road) reconnect(t *testing.T, m *Master) {
	t.Helper()
	connections, dials := m.Status().Reconnects, r.dialled()
	r.hangUp()
	eventually(t, "it has dialled again", func() bool {
		r.pass(time.Millisecond)
		return r.dialled() > dials
	})
	eventually(t, "it has connected again", func() bool { return m.Status().Reconnects > connections })
}

func TestFar_master_is_reported_once(t *testing.T) {
	const far = 80 * time.Millisecond
	// Given a master whose round trip is longer than the node timeout,
	r := newRoad(t, far)
	log := &journal{}
	m := connect(t, r.addr(), Config{NodeTimeout: 50 * time.Millisecond, Clock: r.clock, Logger: slog.New(log)})
	reports := func() int {
		return log.count("WARN", r.addr(), "it will never vote", "round_trip=80ms", "node_timeout=50ms", "WithNodeTimeout(170ms)")
	}
	// then the log says so, and what to do about it, but not at every connection,
	if n := reports(); n != 1 || m.Status().RoundTrip != far {
		t.Errorf("reported %d times, round trip %v; want once and %v", n, m.Status().RoundTrip, far)
	}
	r.reconnect(t, m)
	if n := reports(); n != 1 {
		t.Errorf("after another connection reported %d times, want once", n)
	}
	// unless it has been near in between.
	r.set(healthy)
	r.reconnect(t, m)
	if trip := m.Status().RoundTrip; trip >= far {
		t.Errorf("round trip %v once it is near", trip)
	}
	r.set(but("PING", func([]string) string { r.pass(far); return "default" }))
	r.reconnect(t, m)
	eventually(t, "it is reported twice: far, near, and far again", func() bool {
		return log.count("WARN", r.addr(), "it will never vote") == 2
	})
}

func TestNear_master_that_was_busy_once_is_not_reported(t *testing.T) {
	const busy, near = 80 * time.Millisecond, 10 * time.Millisecond
	r := newRoad(t, busy, near)
	log := &journal{}
	m := connect(t, r.addr(), Config{NodeTimeout: 50 * time.Millisecond, Clock: r.clock, Logger: slog.New(log)})
	if n := log.count("it will never vote"); n != 0 || m.Status().RoundTrip != near {
		t.Errorf("reported %d times, round trip %v; want never and %v", n, m.Status().RoundTrip, near)
	}
}

func TestFar_master_is_not_reported_where_nobody_votes(t *testing.T) {
	r := newRoad(t, time.Second)
	log := &journal{}
	m := connect(t, r.addr(), Config{Clock: r.clock, Logger: slog.New(log)})
	if n := log.count("it will never vote"); n != 0 || m.Status().RoundTrip != time.Second {
		t.Errorf("without a node timeout: reported %d times, round trip %v", n, m.Status().RoundTrip)
	}
}
