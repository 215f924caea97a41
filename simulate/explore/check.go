package explore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// watcher checks one run of a small world. It looks for two leases that are valid at the same
// time in any equivalent order of the steps, not only in the order that was run. Such an order
// exists unless the end of one lease led to the beginning of the other.
type watcher struct {
	run   *miniature
	spans []*tenure
	keys  []keyEvent
	found *simulate.Violation
}

// tenure is a lease, from the step in which its client got it to the step that ended its
// validity.
type tenure struct {
	client   *explorer
	lease    *redlock.Lease
	shared   bool // with other readers
	renewed  bool // its last Extend succeeded
	let      bool // its owner unlocked it
	from, to int  // to is -1 while it is valid
}

// keyEvent is that a master begins or ceases to keep a value.
type keyEvent struct {
	step    int
	master  int8
	value   string
	kept    bool
	deleted bool // a command ended it, and no TTL or restart
}

func (w *watcher) report(kind simulate.ViolationKind, what string, clients ...int) {
	if w.found == nil {
		w.found = &simulate.Violation{Kind: kind, What: what, Clients: clients}
	}
}

// holds is called when a client has got a lease.
func (w *watcher) holds(c *explorer, l *redlock.Lease) {
	w.run.looking = true
	defer func() { w.run.looking = false }()
	if !l.Valid() {
		w.report(simulate.EndedLease, fmt.Sprintf("%s got a lease that had ended", nameOf(int(c.index))), int(c.index))
	}
	w.spans = append(w.spans, &tenure{client: c, lease: l, shared: seam.IsShared(l), from: w.run.step(), to: -1})
}

// lets is called when a lease's owner no longer relies on it.
func (w *watcher) lets(l *redlock.Lease) {
	for _, s := range w.spans {
		if s.lease == l {
			s.let = true
			s.end()
		}
	}
}

func (w *watcher) crashed(c *explorer) {
	for _, s := range w.spans {
		if s.client == c {
			s.end()
		}
	}
}

func (s *tenure) end() {
	if s.to < 0 {
		s.to = s.client.run.step()
	}
}

func (w *watcher) extended(l *redlock.Lease, renewed bool) {
	for _, s := range w.spans {
		if s.lease == l {
			s.renewed = renewed
		}
	}
}

// look notes which leases the last step ended.
func (w *watcher) look() {
	w.run.looking = true
	defer func() { w.run.looking = false }()
	for _, s := range w.spans {
		switch {
		case s.to >= 0:
		case !s.lease.Valid():
			s.end()
		case seam.IsShared(s.lease) && !s.shared && !s.client.writes: // a writer has become a reader
			s.end()
			w.holds(s.client, s.lease)
		}
	}
}

// keeps is called with what a master stored before a step, and stores after it.
func (w *watcher) keeps(m *cell, before, after string, deleted bool) {
	if before == after {
		return
	}
	if before != "" {
		w.keys = append(w.keys, keyEvent{w.run.step(), m.index, before, false, deleted})
	}
	if after != "" {
		w.keys = append(w.keys, keyEvent{w.run.step(), m.index, after, true, false})
	}
}

// rest is called when nothing is left to happen but faults.
func (w *watcher) rest() {
	x := w.run
	x.looking = true
	defer func() { x.looking = false }()
	w.repaired()
	for _, c := range x.clients {
		if c.waits() {
			w.report(simulate.Stuck, fmt.Sprintf("%s waits, and nothing is left that could wake it", nameOf(int(c.index))), int(c.index))
		}
	}
	for _, m := range x.masters {
		e := m.keys.Keys[exploredLock]
		if e == nil || x.clients[e.By].dead() || e.Value == m.late || w.relies(e.Value) || w.rests(e.Value) {
			continue // it is held, or rests, or its client cannot know of it and leaves it to its TTL
		}
		w.report(simulate.Leftover, fmt.Sprintf("%s still has a key of %s, which holds nothing and owes no release", m.name(), nameOf(e.By)), e.By)
	}
	w.unheld()
}

// unheld reports readers and permits that are still stored after every lease was unlocked.
func (w *watcher) unheld() {
	for _, s := range w.spans {
		if !s.let {
			return
		}
	}
	for _, m := range w.run.masters {
		for _, key := range slices.Sorted(maps.Keys(m.keys.Keys)) {
			if masters.Holds(key) && len(m.keys.Keys[key].Queue) > 0 {
				w.report(simulate.Leftover, fmt.Sprintf("%s still has members in %s, although nobody holds the lock", m.name(), key))
			}
		}
	}
}

// repaired reports a master that told a holder that its key is gone, and did not get it
// back.
func (w *watcher) repaired() {
	for _, s := range w.spans {
		for _, m := range w.run.masters {
			if s.renewed && s.to < 0 && m.missed == s.lease.Value() && m.value() != m.missed {
				w.report(simulate.Unbacked, fmt.Sprintf("%s told %s that its key was gone, and did not get it back", m.name(), nameOf(int(s.client.index))), int(s.client.index))
			}
		}
	}
}

func (w *watcher) relies(value string) bool {
	for _, s := range w.spans {
		if !s.let && s.lease.Value() == value {
			return true
		}
	}
	return false
}

// rests reports whether a quorum keeps a cached lock for its client, which does not use it.
func (w *watcher) rests(value string) bool {
	keep := 0
	for _, m := range w.run.masters {
		if m.value() == value {
			keep++
		}
	}
	return masters.IsCached(value) && keep >= quorum.Size(len(w.run.masters))
}

// exploredLock is the name of the lock of small worlds.
const exploredLock = "lock"

// judge checks a run as a whole. causes has, for each step, the steps that led to it.
func (w *watcher) judge(causes []set) {
	led := func(a, b int) bool { return a >= 0 && (a == b || causes[b].has(a)) }
	for i, a := range w.spans {
		for _, b := range w.spans[i+1:] {
			if a.client != b.client && !(a.shared && b.shared) && !led(a.to, b.from) && !led(b.to, a.from) {
				w.report(simulate.Overlap, fmt.Sprintf("%s and %s both hold the lock", nameOf(int(a.client.index)), nameOf(int(b.client.index))), int(a.client.index), int(b.client.index))
			}
		}
		if !a.shared && !w.run.world.kind.IsSemaphore() {
			w.backed(a, causes, led)
		}
	}
	if w.run.world.kind.IsFenced() {
		w.tokens(led)
	}
}

// tokens reports a fencing token that two leases share, and a token below that of a lease that
// had ended before.
func (w *watcher) tokens(led func(a, b int) bool) {
	for _, a := range w.spans {
		for _, b := range w.spans {
			ta, tb := a.lease.Token(), b.lease.Token()
			if a != b && (ta == tb || led(a.to, b.from) && tb < ta) {
				w.report(simulate.Token, fmt.Sprintf("%s holds the lock with the token %d, and there was a token %d before", nameOf(int(b.client.index)), tb, ta), int(b.client.index))
			}
		}
	}
}

// backed reports a lease that has less than a quorum of masters at some moment
// of an equivalent order, and one whose key was deleted.
func (w *watcher) backed(s *tenure, causes []set, led func(a, b int) bool) {
	var losses []keyEvent
	for _, k := range w.keys {
		if k.value != s.lease.Value() || k.kept || led(s.to, k.step) {
			continue
		}
		losses = append(losses, k)
		if k.deleted {
			w.report(simulate.OwnDelete, fmt.Sprintf("the key of %s was deleted at %c while its lease was valid", nameOf(int(s.client.index)), 'A'+k.master), int(s.client.index))
		}
	}
	losses = losses[:min(len(losses), 8)]
	for some := range 1 << len(losses) {
		// The earliest moment at which these losses have happened: nothing has that they
		// do not need.
		moment := causes[s.from]
		moment.add(s.from)
		for i, k := range losses {
			if some&(1<<i) != 0 {
				moment.join(&causes[k.step])
				moment.add(k.step)
			}
		}
		if n := w.keeping(s.lease.Value(), &moment); n < quorum.Size(len(w.run.masters)) {
			w.report(simulate.Unbacked, fmt.Sprintf("%s holds the lock, and only %d of %d masters keep it", nameOf(int(s.client.index)), n, len(w.run.masters)), int(s.client.index))
			return
		}
	}
}

// keeping counts the masters that keep a value at a moment.
func (w *watcher) keeping(value string, moment *set) int {
	var now [26]bool
	n := 0
	for _, k := range w.keys {
		if k.value == value && moment.has(k.step) && now[k.master] != k.kept {
			now[k.master] = k.kept
			if k.kept {
				n++
			} else {
				n--
			}
		}
	}
	return n
}
