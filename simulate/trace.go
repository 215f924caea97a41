package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// trace records what a timeline shows. A nil trace records nothing.
type trace struct {
	spans []span
	marks []mark
	open  map[string]*span // what lasts now, by lane, kind and lock
	locks []string         // that some master has stored so far
	began [][]time.Duration
	end   time.Duration
}

func newTrace() *trace { return &trace{open: map[string]*span{}} }

// span is something that lasted.
type span struct {
	lane     string
	kind     spanKind
	from, to time.Duration
	client   int    // whose key it is
	lock     string // the name of the lock, of a key
	label    string
}

type spanKind string

const (
	spanHeld    spanKind = "held"    // a client may rely on the lock
	spanWaiting spanKind = "waiting" // for it
	spanStopped spanKind = "stopped" // the host stands still
	spanDown    spanKind = "down"
	spanClock   spanKind = "clock" // it is wrong
	spanKey     spanKind = "key"   // the master stores the key of a client
)

// mark is something that happened at an instant.
type mark struct {
	lane  string
	at    time.Duration
	lasts time.Duration
	label string
}

func (t *trace) add(s span) {
	if t != nil {
		t.spans = append(t.spans, s)
	}
}

// held records a hold that is over: to the end of its validity, or to where its
// owner let go.
func (t *trace) held(cl *claim, now time.Duration) {
	if t == nil {
		return
	}
	s := span{lane: cl.client.host.name, kind: spanHeld, from: cl.since, to: now, client: cl.client.index, label: "let go"}
	if cl.ended {
		s.to, s.label = cl.end, "validity over"
	}
	t.add(s)
}

// act records when a caller's action began.
func (t *trace) act(caller, i int, at time.Duration) {
	if t == nil {
		return
	}
	for len(t.began) <= caller {
		t.began = append(t.began, nil)
	}
	for len(t.began[caller]) <= i {
		t.began[caller] = append(t.began[caller], 0)
	}
	t.began[caller][i] = at
}

// sample looks at every host after an event.
func (t *trace) sample(tr *trial) {
	now := tr.world.now
	t.end = now
	for _, m := range tr.masters {
		t.host(m.host, now)
		for _, key := range sortedKeys(m.keys.Keys) {
			if masters.IsLock(key) && !slices.Contains(t.locks, key) {
				t.locks = append(t.locks, key)
			}
		}
		for _, lock := range t.locks {
			holder, label := -1, ""
			if e := m.keys.Find(lock); e != nil && !m.host.down {
				holder = e.By
				label = keyOf(lock, e.By)
				if e.Value != "" {
					label += ": " + e.Value
				}
			}
			t.state(m.host.name, spanKey, holder, lock, label, now)
		}
	}
	for _, c := range tr.clients {
		t.host(c.host, now)
	}
}

func (t *trace) host(h *host, now time.Duration) {
	t.state(h.name, spanDown, choose(h.down, 0, -1), "", "down", now)
	t.state(h.name, spanStopped, choose(h.stopped(), 0, -1), "", "stands still", now)
	label := ""
	switch c := h.clock; {
	case c.frozen:
		label = "clock stands still"
	case c.rate != 0:
		label = fmt.Sprintf("clock runs %+.2f%%", float64(c.rate)/1e4)
	case c.asleep == 0:
		if off := short(c.wallNow() - now); off != 0 {
			label = fmt.Sprintf("clock is off by %v", off)
		}
	}
	t.state(h.name, spanClock, choose(label != "", 0, -1), "", label, now)
}

func choose(yes bool, a, b int) int {
	if yes {
		return a
	}
	return b
}

// keyOf says whose key it is, and of which lock if there is more than one.
func keyOf(lock string, client int) string {
	if lock == lockName {
		return "key of " + clientName(client)
	}
	return "key of " + clientName(client) + " (" + lock + ")"
}

// state begins and ends spans of a kind on a lane, and of one lock if it is a key; a
// negative client is none.
func (t *trace) state(lane string, kind spanKind, client int, lock, label string, now time.Duration) {
	id := lane + string(kind) + lock
	s := t.open[id]
	if s != nil && (client != s.client || label != s.label) {
		s.to = now
		t.spans = append(t.spans, *s)
		delete(t.open, id)
		s = nil
	}
	if s == nil && client >= 0 {
		t.open[id] = &span{lane: lane, kind: kind, from: now, client: client, lock: lock, label: label}
	}
}

// close ends what still lasts.
func (t *trace) close() {
	if t == nil {
		return
	}
	for _, id := range sortedKeys(t.open) {
		s := t.open[id]
		s.to = t.end
		t.spans = append(t.spans, *s)
	}
	clear(t.open)
}
