package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// Whoever a majority of the masters has queued for a fair lock before another call
// begins gets the lock before that call does, as long as it waits and stays queued
// there. That is looked for at the masters' keys.

// lineup is one call for a fair lock, and who was queued for it when it began.
type lineup struct {
	name  string
	ahead []*ahead
}

// ahead is a waiter that was queued before.
type ahead struct {
	*place
	waiter string
	at     quorum.Set // the masters that have had it queued ever since
	wants  []*want    // the call is one of these
}

// place is where a waiter belongs in the queue at every master.
type place struct {
	seen   time.Duration // when a master first heard of it
	ticket int64         // that it is asking with for good; 0: not yet known
	client owner
}

// queueUp begins a call for a fair lock, until it is granted or fails.
func (k *checker) queueUp(name string) *lineup {
	l := &lineup{name: name}
	for waiter, p := range k.places {
		if p.ticket == 0 {
			continue
		}
		a := &ahead{place: p, waiter: waiter}
		for i, m := range k.trial.masters {
			if m.queues(name, waiter, p.ticket) {
				a.at |= quorum.Only(i)
			}
		}
		for _, w := range k.wants {
			if (owner{w.process.client.index, w.process.client.host.life}) == p.client && w.wants(name) && w.began <= p.seen {
				a.wants = append(a.wants, w)
			}
		}
		if a.at.Len() >= quorum.Size(len(k.trial.masters)) && len(a.wants) > 0 {
			l.ahead = append(l.ahead, a)
		}
	}
	slices.SortFunc(l.ahead, func(a, b *ahead) int {
		return cmp.Or(cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.waiter, b.waiter))
	})
	k.trial.stats.inLine += len(l.ahead)
	k.lines = append(k.lines, l)
	return l
}

// queues reports whether a waiter is queued at a master with a ticket.
func (m *master) queues(name, waiter string, ticket int64) bool {
	q := node.QueueOf("", name)
	at, ok := m.keys.score(q.Order, waiter)
	_, known := m.keys.hget(q.Entries, waiter)
	return ok && known && at == ticket
}

// queuedAt notes what a command has done to the queues of a master.
func (k *checker) queuedAt(m *master, cmd *node.Command) {
	if cmd.Script == node.ScriptFair || cmd.Script == node.ScriptAsk {
		waiter, _ := splitValue(cmd.Args[0])
		p := k.places[waiter]
		if p == nil {
			p = &place{seen: k.trial.world.now, client: ownerOf(cmd.Args[0])}
			k.places[waiter] = p
		}
		if cmd.Script == node.ScriptAsk {
			p.ticket, _ = strconv.ParseInt(cmd.Args[1], 10, 64)
		}
	}
	k.lookAtLines(m)
}

// lookAtLines drops the masters that have not kept a waiter.
func (k *checker) lookAtLines(m *master) {
	for _, l := range k.lines {
		for _, a := range l.ahead {
			if a.at.Has(m.index) && !m.queues(l.name, a.waiter, a.ticket) {
				a.at &^= quorum.Only(m.index)
			}
		}
	}
}

// over ends a call.
func (k *checker) over(l *lineup) {
	if l != nil {
		k.lines = slices.DeleteFunc(k.lines, func(o *lineup) bool { return o == l })
	}
}

// passed reports a call that got the lock before somebody who was queued when it
// began.
func (k *checker) passed(cl *claim) {
	if cl.line == nil {
		return
	}
	k.over(cl.line)
	for _, a := range cl.line.ahead {
		if a.at.Len() < quorum.Size(len(k.trial.masters)) || slices.ContainsFunc(a.wants, func(w *want) bool { return w.over || w.ctx.Err() != nil }) {
			continue
		}
		k.report(Violation{
			Kind: Passed,
			What: fmt.Sprintf("%s got %q before %s, which %d masters had queued before it began",
				cl.client.host.name, cl.line.name, a.wants[0].process.name, a.at.Len()),
			Clients: []int{cl.client.index, a.wants[0].process.client.index},
		})
		return
	}
}
