package waiting

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ear listens to one master. The mutex of the queues guards it.
type ear struct {
	queues *Queues
	node   int
	line   line // waiters whose ask is to be repeated
	open   int  // repeats without an answer
}

// Heard passes a grant or a turn on to its waiter. If the waiter has left, Heard releases
// the grant and the place in the queue: an ask on a broken connection can run after the
// release that was sent on the next connection.
func (e *ear) Heard(message string) {
	said, w, gone := e.about(message)
	switch {
	case said.Kind == wire.Wanted:
		e.queues.Wanted(said.Key, said.Value)
	case w != nil && said.Kind == wire.Turn:
		w.post(event{kind: masterNotified, master: e.node, value: said.Value})
	case w != nil:
		b := quorum.Ballot{Vote: quorum.Granted, Reply: said.Reply}
		at := e.queues.Watch.Now().Earlier(guard.HeardWithin)
		w.post(event{kind: masterGranted, master: e.node, value: said.Value, ballot: b, at: at})
	case gone:
		e.withdraw(said)
	}
}

// Doubted releases the grant of a departed waiter, as Heard does. A waiter that is
// still there asks again.
func (e *ear) Doubted(message string) {
	switch said, _, gone := e.about(message); {
	case said.Kind == wire.Wanted: // it grants nothing
		e.queues.Wanted(said.Key, said.Value)
	case gone:
		e.withdraw(said)
	default:
		e.Missed()
	}
}

// about parses a message and finds its waiter. The waiter is nil if it has left, which
// gone reports, or if it won a lease that is not released yet. A message about a cached lock has
// none to withdraw.
func (e *ear) about(message string) (said wire.Notice, w *Waiter, gone bool) {
	said, ok := wire.ParseNotice(message)
	id, _, ok2 := values.Ask(said.Value)
	if !ok || !ok2 {
		return said, nil, false
	}
	qs := e.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	k, ok := qs.known[id]
	return said, k.waiter, !ok && !qs.closed && said.Kind != wire.Wanted
}

// withdraw releases the value that a message is about. For each waiter and lock one such
// release is under way at a time: a master that lags behind reports a departed waiter
// with every command, and a release for every message would make it lag even more.
func (e *ear) withdraw(said wire.Notice) {
	qs := e.queues
	id, _, _ := values.Ask(said.Value)
	who := strconv.Itoa(e.node) + " " + id + " " + said.Key // a Multi waits for several
	qs.mu.Lock()
	_, underWay := qs.withdrawn[who]
	qs.withdrawn[who] = underWay
	qs.mu.Unlock()
	if underWay {
		return
	}
	qs.Members.Nodes()[e.node].Do(wire.Withdraw(qs.Prefix, said, qs.TTL), func(r wire.Reply) {
		qs.mu.Lock()
		again := qs.withdrawn[who] && !qs.closed
		delete(qs.withdrawn, who)
		qs.mu.Unlock()
		if again && r.Err == nil {
			e.withdraw(said) // it may have been granted more since
		}
	})
}

// Missed has all waiters repeat their ask at that master, and cached locks renewed: the answer
// says whether others wait.
func (e *ear) Missed() {
	qs := e.queues
	qs.mu.Lock()
	listed := map[*Waiter]bool{}
	for _, w := range e.line.waiters {
		listed[w] = true
	}
	for _, id := range slices.Sorted(maps.Keys(qs.known)) {
		if w := qs.known[id].waiter; w != nil && !listed[w] {
			e.line.waiters = append(e.line.waiters, w)
		}
	}
	qs.mu.Unlock()
	e.goOn()
	qs.Missed()
}

// mostRepeats is how many repeats may be unanswered at a master. The others follow when
// it answers (L46).
const mostRepeats = 16

func (e *ear) goOn() {
	e.line.goOn(e.queues, event{kind: messagesMissed, master: e.node}, func() bool { return e.open < mostRepeats })
}

// asked counts a repeat that is sent.
func (e *ear) asked() {
	e.queues.mu.Lock()
	e.open++
	e.queues.mu.Unlock()
}

// answered has the next waiter repeat its ask.
func (e *ear) answered() {
	e.queues.mu.Lock()
	e.open--
	e.queues.mu.Unlock()
	e.goOn()
}

// line is a list of waiters that act in order, driven by one call at a time: where no
// master is connected, a command is answered during its own send.
type line struct {
	waiters []*Waiter
	moving  bool
}

// goOn posts an event to waiters as long as they may go on.
func (l *line) goOn(qs *Queues, e event, may func() bool) {
	qs.mu.Lock()
	for !l.moving && len(l.waiters) > 0 && may() {
		w := l.waiters[0]
		l.waiters = l.waiters[1:]
		l.moving = true
		qs.mu.Unlock()
		w.post(e)
		qs.mu.Lock()
		l.moving = false
	}
	qs.mu.Unlock()
}

// hearing decides whether the masters can notify the waiters of a client. A queue hands the
// lock only to waiters that can be notified. If several clients could not be notified, each
// would keep a minority for as long as it waits (L35). So a client that no quorum of
// masters can notify does without a queue, until a quorum can.
//
// A connection that breaks is usually made again soon; so one look says little. A
// client is deaf if all looks have found it so for a while.
type hearing struct {
	members *quorum.Members
	channel string        // of all waiters of the client
	none    bool          // the last look found no quorum that can notify us
	since   drift.Instant // the first of the looks in a row that found none
	deaf    bool
}

// deafAfter is longer than it takes to connect, by default.
const deafAfter = 3 * time.Second

// look reports whether we are deaf, and whether that is new.
func (h *hearing) look(now drift.Instant) (deaf, news bool) {
	if h.reaches() {
		h.none, h.deaf = false, false
		return false, false
	}
	if !h.none {
		h.none, h.since = true, now
	}
	news = !h.deaf && now.Sub(h.since) >= deafAfter
	h.deaf = h.deaf || news
	return h.deaf, news
}

// reaches reports whether a quorum of masters can notify us.
func (h *hearing) reaches() bool { return h.enough(h.notifiers()) }

func (h *hearing) enough(masters quorum.Set) bool { return masters.Len() >= h.members.Need() }

// notifiers are the masters that can notify us.
func (h *hearing) notifiers() (all quorum.Set) {
	for i, m := range h.members.Nodes() {
		if s, ok := m.(node.Subscribed); !ok || s.Subscribed(h.channel) {
			all |= quorum.Only(i)
		}
	}
	return all
}

// excuse restarts the time after which a client is deaf: no master could have notified us so far.
func (h *hearing) excuse() { h.none = h.deaf }
