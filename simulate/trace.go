package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// trace records what a timeline shows. A nil trace records nothing.
type trace struct {
	spans []span
	marks []mark
	open  map[string]*span // what lasts now, by lane, kind and id
	began [][]time.Duration
	end   time.Duration
}

func newTrace() *trace { return &trace{open: map[string]*span{}} }

// span is something that lasted.
type span struct {
	lane     string
	kind     spanKind
	from, to time.Duration
	client   int    // whose it is; negative: nobody's, so there is none
	id       string // of what a master stores: tells it from the rest there
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
		t.keys(m, now)
	}
	for _, c := range tr.clients {
		t.host(c.host, now)
	}
}

// keys records what a master stores. What it stores no more is over.
func (t *trace) keys(m *master, now time.Duration) {
	has := map[string]bool{}
	for _, s := range m.stored() {
		has[s.id] = true
		t.state(s, now)
	}
	for _, key := range sortedKeys(t.open) {
		if s := t.open[key]; s.kind == spanKey && s.lane == m.host.name && !has[s.id] {
			t.state(span{lane: s.lane, kind: spanKey, id: s.id, client: -1}, now)
		}
	}
}

// stored returns who has which locks and permits, and who reads, as the master stores it.
func (m *master) stored() (list []span) {
	if m.host.down {
		return nil
	}
	add := func(id, what, lock, value string, by, row int) {
		if lock != lockName {
			what += " (" + lock + ")"
		}
		s := span{lane: m.host.name, kind: spanKey, client: by, id: id, label: what, stored: what, row: row}
		if value != "" {
			s.label += ": " + value
		}
		list = append(list, s)
	}
	for _, key := range sortedKeys(m.keys.Keys) {
		if e := m.keys.Find(key); e != nil && masters.IsLock(key) {
			add(key, "key of "+clientName(e.By), key, e.Value, e.By, 0)
		}
		if lock, ok := strings.CutPrefix(key, "redlock:readers:"); ok {
			for _, reader := range m.members(key) {
				by := masters.OwnerOf(reader).Client
				add(key+" "+reader, clientName(by)+" as a reader", lock, reader, by, 1+by)
			}
		}
		if lock, ok := strings.CutPrefix(key, "redlock:slots:"); ok {
			for _, slot := range m.members(key) {
				waiter := m.ownerOf(lock, slot)
				by, row := masters.OwnerOf(waiter).Client, 1
				if n, err := strconv.Atoi(slot); err == nil {
					row += n
				}
				add(key+" "+slot, "permit "+slot+" of "+clientName(by), lock, waiter, by, row)
			}
		}
	}
	return list
}

// members returns the members of a sorted set whose time is not over.
func (m *master) members(set string) (list []string) {
	for _, q := range m.keys.Members(set) {
		if q.Score > m.keys.Millis() {
			list = append(list, q.Member)
		}
	}
	return list
}

// ownerOf returns the waiter that has a permit.
func (m *master) ownerOf(lock, slot string) string {
	if e := m.keys.Find("redlock:owners:" + lock); e != nil {
		return e.Texts[slot]
	}
	return ""
}

func (t *trace) host(h *host, now time.Duration) {
	t.state(span{lane: h.name, kind: spanDown, client: choose(h.down, 0, -1), label: "down"}, now)
	t.state(span{lane: h.name, kind: spanStopped, client: choose(h.stopped(), 0, -1), label: "stands still"}, now)
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
	t.state(span{lane: h.name, kind: spanClock, client: choose(label != "", 0, -1), label: label}, now)
}

func choose(yes bool, a, b int) int {
	if yes {
		return a
	}
	return b
}

// state begins and ends spans: of a kind on a lane, and of each thing that a master stores.
func (t *trace) state(is span, now time.Duration) {
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
