package redlock

import (
	"maps"
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/values"
)

// ear listens to one master. The mutex of the queues guards it.
type ear struct {
	queues *queues
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
	case w != nil && said.Turn:
		w.post(event{kind: masterNotified, master: e.node, value: said.Value})
	case w != nil:
		b := quorum.Ballot{Vote: quorum.Granted, Reply: said.Reply}
		at := e.queues.client.watch.Now().Earlier(guard.HeardWithin)
		w.post(event{kind: masterGranted, master: e.node, value: said.Value, ballot: b, at: at})
	case gone:
		e.withdraw(said)
	}
}

// Doubted releases the grant of a departed waiter, as Heard does. A waiter that is
// still there asks again.
func (e *ear) Doubted(message string) {
	if said, _, gone := e.about(message); gone {
		e.withdraw(said)
		return
	}
	e.Missed()
}

// about parses a message and finds its waiter. The waiter is nil if it has left, which
// gone reports, or if it won a lease that is not released yet.
func (e *ear) about(message string) (said wire.Notice, w *waiter, gone bool) {
	said, ok := wire.ParseNotice(message)
	id, _, ok2 := values.Ask(said.Value)
	if !ok || !ok2 {
		return said, nil, false
	}
	qs := e.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w, known := qs.known[id]
	return said, w, !known && !qs.closed
}

// withdraw releases the value that a message is about. For each waiter and lock one such
// release is under way at a time: a master that lags behind reports a departed waiter
// with every command, and a release for every message would make it lag even more.
func (e *ear) withdraw(said wire.Notice) {
	qs, c := e.queues, e.queues.client
	id, _, _ := values.Ask(said.Value)
	who := strconv.Itoa(e.node) + " " + id + " " + said.Key // a Multi waits for several
	qs.mu.Lock()
	_, underWay := qs.withdrawn[who]
	qs.withdrawn[who] = underWay
	qs.mu.Unlock()
	if underWay {
		return
	}
	c.members.Nodes()[e.node].Do(wire.Withdraw(c.opt.prefix, said, c.opt.ttl), func(r wire.Reply) {
		qs.mu.Lock()
		again := qs.withdrawn[who] && !qs.closed
		delete(qs.withdrawn, who)
		qs.mu.Unlock()
		if again && r.Err == nil {
			e.withdraw(said) // it may have been granted more since
		}
	})
}

// Missed has all waiters repeat their ask at that master.
func (e *ear) Missed() {
	qs := e.queues
	qs.mu.Lock()
	listed := map[*waiter]bool{}
	for _, w := range e.line.waiters {
		listed[w] = true
	}
	for _, id := range slices.Sorted(maps.Keys(qs.known)) {
		if w := qs.known[id]; w != nil && !listed[w] {
			e.line.waiters = append(e.line.waiters, w)
		}
	}
	qs.mu.Unlock()
	e.goOn()
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
	waiters []*waiter
	moving  bool
}

// goOn posts an event to waiters as long as they may go on.
func (l *line) goOn(qs *queues, e event, may func() bool) {
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
