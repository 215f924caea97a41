package redlock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Waiter is a client that waits for a lock, as far as a majority of the masters knows.
type Waiter struct {
	Client   string    // its client id: see WithClientID
	Metadata string    // the Metadata of its lock
	Since    time.Time // when it began to wait, by the masters' clocks; of a fair lock no earlier than those before it
	Value    string    // of its last ask; that of its lease has a higher number at most
	Position int       // in the order of service, from 1
	Ticket   int64     // waiters are served in the order of these
	Shared   bool      // it wants to read
	Permits  int       // so many of a semaphore; 0: of another kind
	Places   []int     // at each node, from 1, in the order of configuration; 0: it is not queued there
}

// decideQueue finds the waiters that a quorum of nodes has queued, in the order of
// their tickets. If nodes do not agree in a ticket the highest counts, as it does when
// a fair waiter gets its own. A holder waits no more: a master keeps its place in the
// queue for a while after a hand-over.
func (h *Holder) decideQueue(need int, held map[string]bool) {
	known := map[string]*Waiter{}
	var all []*Waiter
	for i, v := range h.Nodes {
		for place, q := range v.seen.Queue {
			id, ask, ok := parseAsk(q.Value)
			if !ok || held[id] {
				continue
			}
			w := known[id]
			if w == nil {
				w = &Waiter{Places: make([]int, len(h.Nodes))}
				known[id], all = w, append(all, w)
			}
			w.Places[i], w.Ticket = place+1, max(w.Ticket, q.Ticket)
			if _, last, _ := parseAsk(w.Value); w.Value == "" || ask > last {
				w.asks(q)
			}
		}
	}
	for _, w := range all {
		if counted(w.Places, func(place int) bool { return place > 0 }) >= need {
			h.Queue = append(h.Queue, *w)
		}
	}
	slices.SortFunc(h.Queue, func(a, b Waiter) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), strings.Compare(a.Value, b.Value))
	})
	for i := range h.Queue {
		w := &h.Queue[i]
		w.Position, w.Since = i+1, time.UnixMicro(w.Ticket)
	}
}

// ids returns those of the holders.
func (h *Holder) ids() map[string]bool {
	all := map[string]bool{}
	for _, s := range h.Shares {
		all[idOf(s.Value)] = true
	}
	if h.Value != "" {
		all[idOf(h.Value)] = true
	}
	return all
}

// queuedOf counts those of a queue that hold the lock.
func queuedOf(queue []wire.Queued, held map[string]bool) (n int) {
	for _, q := range queue {
		if held[idOf(q.Value)] {
			n++
		}
	}
	return n
}

// asks notes what a waiter asks for.
func (w *Waiter) asks(q wire.Queued) {
	w.Value = q.Value
	w.Client, w.Metadata, _ = ParseValue(q.Value)
	w.Shared = q.How == "r"
	w.Permits, _ = strconv.Atoi(strings.TrimPrefix(q.How, "w"))
	if !strings.HasPrefix(q.How, "w") { // a number alone is a fencing counter
		w.Permits = 0
	}
}
