package node

import (
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// witnessed are the events that an observer was told.
type witnessed struct {
	mu   sync.Mutex
	told []Event
}

func (w *witnessed) observe(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, e)
}

func (w *witnessed) kinds() (kinds []EventKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.told {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (w *witnessed) last() Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[len(w.told)-1]
}

// await waits until the events so far are these.
func (w *witnessed) await(t *testing.T, want ...EventKind) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("told of %q, want %q", w.kinds(), want)
		}
	}()
	eventually(t, "all events are told", func() bool { return reflect.DeepEqual(w.kinds(), want) })
}

func TestObserve_tells_of_silence_and_of_its_end(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), still)
	var w witnessed
	m.Observe(w.observe)
	s.set(func([]string) string { return silence })
	give(m, get("k"))
	for range 5 {
		look(m)
	}
	m.fallSilent(m.live.Load(), true) // by another look at the same time
	w.await(t, EventConnected, EventSilent)
	if e := w.last(); !errors.Is(e.Err, ErrSilent) {
		t.Errorf("told of %+v", e)
	}
	var late witnessed
	m.Observe(late.observe)
	late.await(t, EventConnected, EventSilent)

	s.set(but("ECHO", func([]string) string { return "+1\r\n+2\r\n" }))
	wantValue(t, ask(t, m, echo("wake up")), "2")
	look(m)
	look(m)
	m.fallSilent(m.live.Load(), false)
	m.Close()
	late.await(t, EventConnected, EventSilent, EventAnswering)
}

// A connection is lost once, however often the next attempts fail, and for
// whatever reasons.
func TestObserve_tells_of_a_lost_connection_once(t *testing.T) {
	s := newStub(t, healthy)
	log := &journal{}
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}, Logger: slog.New(log)})
	var w witnessed
	m.Observe(w.observe)
	s.set(but("ROLE", func([]string) string { return "-LOADING Redis is loading\r\n" }))
	s.hangUp()
	eventually(t, "the log tells of another trouble", func() bool { return log.count("not connected", "LOADING") == 1 })
	w.await(t, EventConnected, EventDisconnected)
	if e := w.last(); !errors.Is(e.Err, ErrDown) {
		t.Errorf("told of %+v", e)
	}
	var late witnessed
	m.Observe(late.observe)
	late.await(t, EventDisconnected)

	s.set(healthy)
	late.await(t, EventDisconnected, EventConnected)
	m.Close()
	late.await(t, EventDisconnected, EventConnected)
}

// A quarantine is told with its rest and its cause, and once more when it begins
// anew.
func TestObserve_tells_of_each_loss(t *testing.T) {
	s := redistest.Start(t)
	declareNew(t, s.URL())
	m := connect(t, s.URL(), Config{Guard: guard.Config{Hold: time.Hour}, Heartbeat: time.Millisecond, MaxSilence: time.Minute, MaxAge: time.Minute})
	var w witnessed
	m.Observe(w.observe)
	w.await(t, EventConnected)
	for i := range 2 {
		if _, err := s.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		w.await(t, []EventKind{EventConnected, EventQuarantined, EventQuarantined}[:i+2]...)
		e := w.last()
		if !errors.Is(e.Err, guard.ErrQuarantined) || e.Rest <= 59*time.Minute || e.Rest > time.Hour {
			t.Errorf("told of %+v", e)
		}
		// Without a marker there is nothing that the next FLUSHALL could take away.
		eventually(t, "it is marked again", func() bool {
			n, err := s.Do("EXISTS", "redlock:marker")
			return err == nil && n == int64(1)
		})
	}
	var late witnessed
	m.Observe(late.observe)
	late.await(t, EventQuarantined, EventConnected)

	m.Close()
	m.Observe(w.observe)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events.telling != nil {
		t.Error("a master that was closed tells")
	}
}

// An observer that is slow misses nothing, and nobody else waits for it but Close.
func TestObserve_a_slow_observer_holds_nothing_up(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
	var w witnessed
	began, goOn := make(chan struct{}, 10), make(chan struct{})
	m.Observe(func(e Event) {
		began <- struct{}{}
		<-goOn
		w.observe(e)
	})
	receiveFrom(t, "the first event", began)

	s.hangUp()
	eventually(t, "it is connected again", func() bool { st := m.Status(); return st.Reconnects == 1 && st.State == StateConnected })
	if r := ask(t, m, get("k")); r.Err != nil {
		t.Error(r.Err)
	}
	if n := len(w.kinds()); n != 0 {
		t.Errorf("%d events are told already", n)
	}
	closed := make(chan error)
	go func() { closed <- m.Close() }()
	eventually(t, "Close waits", func() bool { return m.Status().State == StateClosed })
	close(goOn)
	receiveFrom(t, "the end of Close", closed)
	if want := []EventKind{EventConnected, EventDisconnected, EventConnected}; !reflect.DeepEqual(w.kinds(), want) {
		t.Errorf("told of %q when it was closed, want %q", w.kinds(), want)
	}
}

func TestObserve_allocates_nothing_per_call(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: time.Hour})
	var w witnessed
	m.Observe(w.observe)
	w.await(t, EventConnected)
	c, p := newCaller(m), newPair(0)
	n := testing.AllocsPerRun(1000, func() {
		for _, cmd := range []*wire.Command{p.acquire, p.release} {
			if r := c.ask(cmd); r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for acquire and release", n)
	}
}

// What nobody listens to is not kept.
func TestObserve_nobody_listens(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
	s.hangUp()
	eventually(t, "it is connected again", func() bool { return m.Status().Reconnects == 1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events.untold != nil || m.events.telling != nil {
		t.Errorf("kept %+v", m.events)
	}
	if n := testing.AllocsPerRun(100, func() { m.happened(Event{Kind: EventConnected}) }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}
