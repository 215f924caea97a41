package promises

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// This file checks fairness by the masters' keys. A waiter that a majority of the masters has
// queued before another call begins gets the lock before that call does, as long as the waiter
// waits and stays queued there.

// lineup is one call for a fair lock, with the waiters that were queued when it began.
type lineup struct {
	name  string
	queue wire.Queue
	ahead []*ahead
	// seen is how often each master had changed its queues when they were last
	// looked at; zero: look again.
	seen []uint64
}

// ahead is a waiter that was queued before a call began.
type ahead struct {
	*place
	at    quorum.Set // the masters that have had it queued ever since
	wants []*want    // its own call is one of these
}

// place is a waiter's place in the queue of every master.
type place struct {
	waiter string
	seen   time.Duration // when a master first heard of it
	ticket int64         // the ticket that it has settled on; 0: none yet
	client masters.Owner
}

// queueUp begins a call for a fair lock, until it is granted or fails.
func (k *checker) queueUp(name string) *lineup {
	l := &lineup{name: name, queue: wire.QueueOf("", name), seen: make([]uint64, len(k.scene.Masters))}
	k.placed = slices.DeleteFunc(k.placed, k.past)
	for _, p := range k.placed {
		if a := k.isAhead(p, l); a != nil {
			l.ahead = append(l.ahead, a)
		}
	}
	for i, m := range k.scene.Masters {
		l.seen[i] = m.Keys.Changes
	}
	slices.SortFunc(l.ahead, func(a, b *ahead) int {
		return cmp.Or(cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.waiter, b.waiter))
	})
	k.scene.Stats.InLine += len(l.ahead)
	k.lines = append(k.lines, l)
	return l
}

// past reports whether the call that queued a waiter is over.
func (k *checker) past(p *place) bool {
	return p.seen < k.scene.World.Now && !slices.ContainsFunc(k.wants, func(w *want) bool { return w.madeBy(p) })
}

// madeBy reports whether p may be the waiter of this caller.
func (w *want) madeBy(p *place) bool {
	c := w.process.Client
	return p.client == c.Me() && w.began <= p.seen
}

// isAhead returns the waiter if it comes before the call, and nil otherwise.
func (k *checker) isAhead(p *place, l *lineup) *ahead {
	if p.ticket == 0 {
		return nil
	}
	a := &ahead{place: p}
	for _, w := range k.wants {
		if w.madeBy(p) && w.wants(l.name) {
			a.wants = append(a.wants, w)
		}
	}
	if len(a.wants) == 0 {
		return nil
	}
	for i, m := range k.scene.Masters {
		if p.queued(m.Keys.Find(l.queue.Order), m.Keys.Find(l.queue.Entries)) {
			a.at |= quorum.Only(i)
		}
	}
	if a.at.Len() < quorum.Size(len(k.scene.Masters)) {
		return nil
	}
	return a
}

// queued reports whether a master has the waiter queued with its ticket; order and
// entries are the keys of the queue.
func (p *place) queued(order, entries *masters.Entry) bool {
	if order == nil || entries == nil {
		return false
	}
	_, known := entries.Texts[p.waiter]
	return known && slices.Contains(order.Queue, masters.Queued{Member: p.waiter, Score: p.ticket})
}

// queuedAt notes what a command has done to the queues of a master.
func (k *checker) queuedAt(m *fleet.Master, cmd *wire.Command) {
	if cmd.Script == wire.ScriptFair || cmd.Script == wire.ScriptAsk {
		waiter, _ := masters.SplitValue(cmd.Args[0])
		p := k.places[waiter]
		if p == nil {
			p = &place{waiter: waiter, seen: k.scene.World.Now, client: masters.OwnerOf(cmd.Args[0])}
			k.places[waiter] = p
			k.placed = append(k.placed, p)
		}
		if cmd.Script == wire.ScriptAsk {
			k.setTicket(p, cmd.Args[1])
		}
	}
	k.lookAtLines(m)
}

// setTicket notes the ticket that a waiter asks with.
func (k *checker) setTicket(p *place, arg string) {
	ticket, _ := strconv.ParseInt(arg, 10, 64)
	if p.ticket != 0 && p.ticket != ticket {
		for _, l := range k.lines {
			clear(l.seen) // it may be queued with the old one: look again
		}
	}
	p.ticket = ticket
}

// lookAtLines notes which waiters a master has not kept in its queue.
func (k *checker) lookAtLines(m *fleet.Master) {
	for _, l := range k.lines {
		if len(l.ahead) == 0 {
			continue
		}
		order, entries := m.Keys.Find(l.queue.Order), m.Keys.Find(l.queue.Entries)
		if order != nil && entries != nil && l.seen[m.Index] == m.Keys.Changes {
			continue
		}
		l.seen[m.Index] = m.Keys.Changes
		for _, a := range l.ahead {
			if a.at.Has(m.Index) && !a.queued(order, entries) {
				a.at &^= quorum.Only(m.Index)
			}
		}
	}
}

// Over is called when a call has got its lock or failed.
func (k *checker) Over(l *lineup) {
	if l != nil {
		k.lines = slices.DeleteFunc(k.lines, func(o *lineup) bool { return o == l })
	}
}

// passed reports a call that got the lock before a waiter that was queued when the call began.
func (k *checker) passed(cl *Claim) {
	if cl.Line == nil {
		return
	}
	k.Over(cl.Line)
	stats := k.scene.Stats
	stats.Checked(tally.NobodyPassed, true)
	for _, a := range cl.Line.ahead {
		if a.at.Len() < quorum.Size(len(k.scene.Masters)) || slices.ContainsFunc(a.wants, func(w *want) bool { return w.over || w.ctx.Err() != nil }) {
			continue
		}
		stats.Failed[tally.NobodyPassed]++
		k.Report(tally.Violation{
			Kind: tally.Passed,
			What: fmt.Sprintf("%s got %q before %s, which %d masters had queued before it began",
				cl.Client.Host.Name, cl.Line.name, a.wants[0].process.Name(), a.at.Len()),
			Clients: []int{cl.Client.Index, a.wants[0].process.Client.Index},
		})
		return
	}
}

// The order of arrival holds in true time: no waiter is overtaken forever, whatever
// the clocks of the others say (L41). Two callers that come at about the same time may be
// served in any order, and a waiter that has got the lock from a minority of the masters may be
// overtaken once. But callers that come again and again must not have the lock in turns while
// an earlier caller waits, but for a pause in which another client has left it to who comes.

// overtakes notes that a caller that waited got a lock before others, of other clients, that
// came long before. Readers overtake no readers: they share the lock.
func (k *checker) overtakes(cl *Claim) {
	for _, w := range k.wants {
		if w.process.Client == cl.Client || len(w.names) != 1 || !cl.about(w.names[0]) || w.reads && cl.shared() {
			continue
		}
		if cl.process == nil || cl.tried || cl.began <= w.began+k.apart() || !k.waitsWell(w) || !k.Calm(cl.Client) || k.Ledger.Book(w.names[0]).pauses.open(cl) {
			continue
		}
		if w.overtaken == nil {
			w.overtaken = map[*Caller]int{}
		}
		w.overtaken[cl.process]++
		if n := w.overtaken[cl.process]; n > most && !w.told {
			w.told = true
			k.Report(tally.Violation{
				Kind:    tally.Passed,
				What:    fmt.Sprintf("%s got %q for the %d. time while %s, which came %v before the last, waits for it", cl.process.Name(), w.names[0], n, w.process.Name(), plan.Short(cl.began-w.began)),
				Clients: []int{cl.Client.Index, w.process.Client.Index},
			})
		}
	}
}

// most is how often one caller may overtake another that waits.
const most = 2

// apart is by how much one must come earlier to be first. A ticket is by what the masters'
// clocks said at the last heartbeat.
func (k *checker) apart() time.Duration { return k.Trips() + fleet.Heartbeat/10 }

// waitsWell reports whether nothing has been wrong for a waiter since it came.
func (k *checker) waitsWell(w *want) bool {
	c := w.process.Client
	return w.ctx.Err() == nil && w.began > k.settled(c) && k.Calm(c) && c.Host.Resumed < w.began && k.scene.Config.Deaf == 0 && !k.scene.Config.Polling
}
