package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Trace records what a timeline shows. A nil trace records nothing.
type Trace struct {
	spans []span
	marks []mark
	open  map[string]*span // what lasts now, by lane, kind and id
	Began [][]time.Duration
	end   time.Duration
}

func NewTrace() *Trace { return &Trace{open: map[string]*span{}} }

// span is something that lasted.
type span struct {
	lane     string
	kind     spanKind
	from, to time.Duration
	client   int    // the client that it belongs to; negative: it is over
	id       string // of what a master stores: unique at that master
	label    string
	stored   string // what a master stores, without its value
	row      int    // of what a master stores: several share a lane, from 1 on; 0: it has all of it
}

type spanKind string

const (
	spanHeld    spanKind = "held"    // a client may rely on the lock
	spanWaiting spanKind = "waiting" // for it
	spanStopped spanKind = "stopped" // the host stands still
	spanDown    spanKind = "down"
	spanClock   spanKind = "clock" // it is wrong
	spanKey     spanKind = "key"   // the master stores that a client has a lock, a permit or reads
)

// Mark is something that happened at an instant.
type mark struct {
	lane  string
	at    time.Duration
	lasts time.Duration
	label string
}

func (t *Trace) add(s span) {
	if t != nil {
		t.spans = append(t.spans, s)
	}
}

// Held records a hold that is over: to the end of its validity, or to where its
// owner let go.
func (t *Trace) Held(cl *promises.Claim, now time.Duration) {
	if t == nil {
		return
	}
	s := span{lane: cl.Client.Host.Name, kind: spanHeld, from: cl.Since, to: now, client: cl.Client.Index, label: "let go"}
	if cl.Ended {
		s.to, s.label = cl.End, "validity over"
	}
	t.add(s)
}

// Act records when a caller's action began.
func (t *Trace) Act(caller, i int, at time.Duration) {
	if t == nil {
		return
	}
	for len(t.Began) <= caller {
		t.Began = append(t.Began, nil)
	}
	for len(t.Began[caller]) <= i {
		t.Began[caller] = append(t.Began[caller], 0)
	}
	t.Began[caller][i] = at
}

// Sample looks at every host after an event.
func (t *Trace) Sample(tr *promises.Scene) {
	now := tr.World.Now
	t.end = now
	for _, m := range tr.Masters {
		t.host(m.Host, now)
		t.keys(m, now)
	}
	for _, c := range tr.Clients {
		t.host(c.Host, now)
	}
}

// keys records what a master stores. The spans of keys that are gone end.
func (t *Trace) keys(m *fleet.Master, now time.Duration) {
	has := map[string]bool{}
	for _, s := range storedAt(m) {
		has[s.id] = true
		t.state(s, now)
	}
	for _, key := range slices.Sorted(maps.Keys(t.open)) {
		if s := t.open[key]; s.kind == spanKey && s.lane == m.Host.Name && !has[s.id] {
			t.state(span{lane: s.lane, kind: spanKey, id: s.id, client: -1}, now)
		}
	}
}

// storedAt returns a span for each lock, permit and reader that the master stores.
func storedAt(m *fleet.Master) (list []span) {
	if m.Host.Down {
		return nil
	}
	add := func(id, what, lock, value string, by, row int) {
		if lock != plan.LockName {
			what += " (" + lock + ")"
		}
		s := span{lane: m.Host.Name, kind: spanKey, client: by, id: id, label: what, stored: what, row: row}
		if value != "" {
			s.label += ": " + value
		}
		list = append(list, s)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
		if e := m.Keys.Find(key); e != nil && masters.IsLock(key) {
			add(key, "key of "+plan.ClientName(e.By), key, e.Value, e.By, 0)
		}
		if lock, ok := strings.CutPrefix(key, "redlock:readers:"); ok {
			for _, reader := range m.Members(key) {
				by := masters.OwnerOf(reader).Client
				add(key+" "+reader, plan.ClientName(by)+" as a reader", lock, reader, by, 1+by)
			}
		}
		if lock, ok := strings.CutPrefix(key, "redlock:slots:"); ok {
			for _, slot := range m.Members(key) {
				waiter := m.OwnerOf(lock, slot)
				by, row := masters.OwnerOf(waiter).Client, 1
				if n, err := strconv.Atoi(slot); err == nil {
					row += n
				}
				add(key+" "+slot, "permit "+slot+" of "+plan.ClientName(by), lock, waiter, by, row)
			}
		}
	}
	return list
}

func (t *Trace) host(h *world.Host, now time.Duration) {
	t.state(span{lane: h.Name, kind: spanDown, client: choose(h.Down, 0, -1), label: "down"}, now)
	t.state(span{lane: h.Name, kind: spanStopped, client: choose(h.Stopped(), 0, -1), label: "stands still"}, now)
	label := ""
	switch c := h.Clock; {
	case c.Frozen:
		label = "clock stands still"
	case c.Rate != 0:
		label = fmt.Sprintf("clock runs %+.2f%%", float64(c.Rate)/1e4)
	case c.Asleep == 0:
		if off := plan.Short(c.WallNow() - now); off != 0 {
			label = fmt.Sprintf("clock is off by %v", off)
		}
	}
	t.state(span{lane: h.Name, kind: spanClock, client: choose(label != "", 0, -1), label: label}, now)
}

func choose(yes bool, a, b int) int {
	if yes {
		return a
	}
	return b
}

// state begins and ends spans: of a kind on a lane, and of each thing that a master stores.
func (t *Trace) state(is span, now time.Duration) {
	key := is.lane + string(is.kind) + is.id
	s := t.open[key]
	if s != nil && (is.client != s.client || is.label != s.label) {
		s.to = now
		t.spans = append(t.spans, *s)
		delete(t.open, key)
		s = nil
	}
	if s == nil && is.client >= 0 {
		is.from = now
		t.open[key] = &is
	}
}

// Close ends what still lasts.
func (t *Trace) Close() {
	if t == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		s := t.open[id]
		s.to = t.end
		t.spans = append(t.spans, *s)
	}
	clear(t.open)
}

// Mark records a fault.
func (t *Trace) Mark(f *plan.Fault, now time.Duration) {
	t.marks = append(t.marks, mark{f.Where(), now, f.For, f.String()})
}

// Waited records that a client has waited for the lock.
func (t *Trace) Waited(c *promises.Client, began, now time.Duration) {
	t.add(span{lane: c.Host.Name, kind: spanWaiting, from: began, to: now, client: c.Index, label: "waiting"})
}
