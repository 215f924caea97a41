package redlock

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Holder describes the holder of a lock, as far as a majority of the masters knows.
type Holder struct {
	// Held: a client has the lock, alone or as one of many. A majority of the masters
	// stores the same Value, or the same share.
	Held bool
	// Kept: the holder has released the lock, and the lock stays taken until Remaining has
	// passed: see AtLeast. Held is true.
	Kept bool
	// Cached: the lock stays in the process of the holder, which may or may not use it: see
	// the option Cached. Held is true.
	Cached bool
	// Kind is "mutex", "read-write" or "semaphore", and empty when nothing is
	// known. Several names that are held as one are each a mutex.
	Kind string

	Value     string        // Lease.Value of the holder, if it has the lock alone
	Client    string        // the holder's client id, if it is a client of this library
	Metadata  string        // what the holder says of itself
	Remaining time.Duration // until the majority's keys end, unless renewed; negative: no expiry
	// Since is when the holder asked for the lock, by its own clock. A holder that waited
	// asked up to a third of its TTL before it was granted the lock. Zero: unknown, because
	// the lock has no Metadata.
	Since time.Time
	// Token is the holder's fencing token. Zero: it has none, or the masters do not agree
	// yet, or its client is of a version that does not mark fenced values.
	Token uint64

	Shares    []Share // readers, or holders of permits, by value
	Permits   int     // how many a semaphore has
	Available int     // how many of them are free
	Waiting   int     // how many wait, of each client the first: a majority has queued at least so many

	// Queue has the waiters, the next one first. Of a long queue it is the beginning:
	// each node reports 1000 waiters.
	Queue []Waiter

	Nodes []NodeView // what each node said, in the order of configuration

	counter uint64 // of fencing tokens, where a majority of the masters has the holder
}

// Share is held by one of many: a reader, or a holder of permits.
type Share struct {
	Value     string // Lease.Value
	Client    string
	Metadata  string
	Slots     []int         // which permits it holds, numbered from 0; none: it reads
	Remaining time.Duration // until a majority has forgotten it, unless renewed
	Since     time.Time     // as Holder.Since
}

// NodeView is what one node knows of a lock.
type NodeView struct {
	Node      string
	Value     string        // empty: no client has the lock alone
	Kept      bool          // the holder has released it; see Holder.Kept
	Remaining time.Duration // negative: the key has no expiry
	Shares    []Share       // readers, or holders of permits
	Err       error         // why the answer is missing, or nil

	seen wire.Inspected
}

// Inspect asks every node about the holder of the lock of that name, of whatever kind.
// It waits for all of them, at most one node timeout, and fails with ErrNoQuorum when
// too few answered. Of more than a thousand readers or holders of permits each further
// thousand takes as long again. The answer is about a moment that has passed.
func (c *Client) Inspect(ctx context.Context, name string) (Holder, error) {
	l := c.lock(name, c.exclusive(name, lockOptions{}))
	if err := l.check(ctx, "inspect"); err != nil {
		return Holder{}, err
	}
	start := c.watch.Now()
	r := c.members.Survey(wire.Inspect(c.opt.prefix, name), nil)
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return Holder{}, l.fail("inspect", ended(ctx), r)
	}
	h := Holder{Nodes: make([]NodeView, len(c.members.Nodes()))}
	answers := 0
	ballots := r.Ballots(nil)
	more, err := c.readOn(ctx, name, ballots)
	if err != nil {
		return Holder{}, l.fail("inspect", err, r)
	}
	took := c.watch.Now().Sub(start)
	for i, b := range ballots {
		var rest []wire.Share
		if further := more[i]; further != nil {
			rest = further.shares
			if further.err != nil {
				b.Reply = wire.Reply{Err: further.err}
			}
		}
		h.Nodes[i] = viewOf(c.members.Nodes()[i].Addr(), b, rest, took)
		if h.Nodes[i].Err == nil {
			answers++
		}
	}
	need := quorum.Size(len(h.Nodes))
	if answers < need {
		return h, l.fail("inspect", l.closedOr(ErrNoQuorum), r)
	}
	h.decide(need)
	return h, nil
}

// viewOf reads what a node said up to took ago, on its first page and on those after it.
func viewOf(addr string, b quorum.Ballot, more []wire.Share, took time.Duration) NodeView {
	v := NodeView{Node: addr, Err: errOf(b.Reply)}
	v.seen, _ = wire.InspectedOf(b.Reply)
	v.seen.Shares = once(append(v.seen.Shares, more...))
	v.Value, v.Kept = strings.CutPrefix(v.seen.Value, values.Kept)
	v.Remaining = since(v.seen.Remaining, took)
	for _, s := range v.seen.Shares {
		v.Shares = append(v.Shares, shareOf(s, since(s.Remaining, took)))
	}
	return v
}

// since returns the rest of a time after a while. A negative time has no end.
func since(left, while time.Duration) time.Duration {
	if left < 0 {
		return left
	}
	return max(0, left-while)
}

// decide finds what a quorum of nodes says.
func (h *Holder) decide(need int) {
	h.decideHolder(need)
	h.decideShares(need)
	held := h.ids()
	var waiting, permits []int
	var shared []bool
	for _, v := range h.Nodes {
		waiting = append(waiting, v.seen.Waiting-queuedOf(v.seen.Queue, held))
		permits = append(permits, v.seen.Permits)
		shared = append(shared, v.seen.ReadWrite)
	}
	slices.Sort(waiting)
	h.Waiting = waiting[len(waiting)-need]
	h.decideQueue(need, held)
	h.Permits = agreed(permits, need)
	h.Available = h.free(h.Permits, need)
	h.Held = h.Value != "" || len(h.Shares) > 0
	switch {
	case h.Permits > 0 || len(h.Shares) > 0 && h.Shares[0].Slots != nil:
		h.Kind = "semaphore"
	case len(h.Shares) > 0 || values.IsWriter(h.Value) || agreed(shared, need):
		h.Kind = "read-write"
	case h.Held || h.Waiting > 0:
		h.Kind = "mutex"
	}
}

// decideHolder finds the client that has the lock alone.
func (h *Holder) decideHolder(need int) {
	for _, candidate := range h.Nodes {
		if candidate.Value == "" {
			continue
		}
		var left []time.Duration
		var counters []uint64
		kept := false
		for _, v := range h.Nodes {
			if v.Value == candidate.Value {
				kept = kept || v.Kept
				left = append(left, v.Remaining)
				counters = append(counters, v.seen.Counter)
			}
		}
		if len(left) < need {
			continue
		}
		h.Value, h.Kept, h.Remaining = candidate.Value, kept, lasting(left, need)
		h.Client, h.Metadata, h.Since = values.Parse(candidate.Value)
		h.Cached = values.IsCached(candidate.Value)
		h.counter = agreed(counters, need)
		if values.IsFenced(h.Value) {
			h.Token = h.counter
		}
		return
	}
}

// decideShares finds the shares that a quorum of nodes knows, with the same slots.
func (h *Holder) decideShares(need int) {
	left := map[wire.Share][]time.Duration{} // of each, at every node
	var known []wire.Share
	for _, v := range h.Nodes {
		for i, who := range v.seen.Shares {
			who.Remaining = 0
			left[who] = append(left[who], v.Shares[i].Remaining)
			if len(left[who]) == need {
				known = append(known, who)
			}
		}
	}
	slices.SortFunc(known, func(a, b wire.Share) int { return strings.Compare(a.Value, b.Value) })
	for _, who := range known {
		h.Shares = append(h.Shares, shareOf(who, lasting(left[who], need)))
	}
}

func shareOf(who wire.Share, remaining time.Duration) Share {
	s := Share{Value: who.Value, Slots: who.Slots.Numbers(), Remaining: remaining}
	s.Client, s.Metadata, s.Since = values.Parse(who.Value)
	return s
}

// agreed returns what a quorum of nodes said, or nothing.
func agreed[T comparable](said []T, need int) (what T) {
	for _, candidate := range said {
		n := 0
		for _, other := range said {
			if other == candidate {
				n++
			}
		}
		if n >= need {
			return candidate
		}
	}
	return what
}

// free counts the permits that are free at a quorum of nodes. After a Resize to fewer
// a quorum may keep slots that no longer exist.
func (h *Holder) free(permits, need int) (n int) {
	nodes, beyond := make([]int, permits), make([]int, wire.MaxPermits)
	for _, v := range h.Nodes {
		if v.Err != nil {
			continue
		}
		for slot := range nodes {
			nodes[slot]++
		}
		for _, slot := range v.seen.Taken.Numbers() {
			switch {
			case slot < permits:
				nodes[slot]--
			case slot < wire.MaxPermits:
				beyond[slot]++
			}
		}
	}
	enough := func(count int) bool { return count >= need }
	return max(0, counted(nodes, enough)-counted(beyond, enough))
}

// counted returns how many of all are so.
func counted[T any](all []T, so func(T) bool) (n int) {
	for _, one := range all {
		if so(one) {
			n++
		}
	}
	return n
}

// lasting returns how long a quorum of nodes knows what each keeps for so long: the
// quorum is gone when fewer than need are left.
func lasting(left []time.Duration, need int) time.Duration {
	slices.SortFunc(left, func(a, b time.Duration) int {
		if a < 0 || b < 0 { // without end
			return cmp.Compare(a, b)
		}
		return cmp.Compare(b, a)
	})
	return left[need-1]
}

// Waiter is a client that waits for a lock, as far as a majority of the masters knows.
type Waiter struct {
	Client   string // its client id: see WithClientID
	Metadata string // the Metadata of its lock
	// Since is when it began to wait, by the masters' clocks; of a fair lock no earlier than those
	// before it.
	Since   time.Time
	Value   string // of its last ask; that of its lease has a higher number at most
	Ticket  int64  // waiters are served in the order of these
	Shared  bool   // it wants to read
	Permits int    // so many of a semaphore; 0: of another kind
	Places  []int  // at each node, from 1, in the order of configuration; 0: it is not queued there
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
			id, ask, ok := values.Ask(q.Value)
			if !ok || held[id] {
				continue
			}
			w := known[id]
			if w == nil {
				w = &Waiter{Places: make([]int, len(h.Nodes))}
				known[id], all = w, append(all, w)
			}
			w.Places[i], w.Ticket = place+1, max(w.Ticket, q.Ticket)
			if _, last, _ := values.Ask(w.Value); w.Value == "" || ask > last {
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
		w.Since = time.UnixMicro(w.Ticket)
	}
}

// ids returns those of the holders.
func (h *Holder) ids() map[string]bool {
	all := map[string]bool{}
	for _, s := range h.Shares {
		all[values.ID(s.Value)] = true
	}
	if h.Value != "" {
		all[values.ID(h.Value)] = true
	}
	return all
}

// queuedOf counts those of a queue that hold the lock.
func queuedOf(queue []wire.Queued, held map[string]bool) (n int) {
	for _, q := range queue {
		if held[values.ID(q.Value)] {
			n++
		}
	}
	return n
}

// asks notes what a waiter asks for.
func (w *Waiter) asks(q wire.Queued) {
	w.Value = q.Value
	w.Client, w.Metadata, _ = values.Parse(q.Value)
	w.Shared = q.How == "r"
	w.Permits, _ = strconv.Atoi(strings.TrimPrefix(q.How, "w"))
	if !strings.HasPrefix(q.How, "w") { // a number alone is a fencing counter
		w.Permits = 0
	}
}
