package redlock

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// queues are the locks that callers of one client wait for, each with a queue. For
// each lock the first callers in the queue are registered at the masters, as many as
// the lock can serve at once: a thousand waiters for a mutex ask no more often than one.
type queues struct {
	client *Client

	mu          seam.Mutex
	byLock      map[string]*queue
	asking      map[string]*waiter // the waiters that are registered at the masters, by their ids
	won         map[string]bool    // those that were, and have a lease that is not released yet
	withdrawn   map[string]bool    // those that have gone and are withdrawn from a queue of a master: whether it has told of them since
	unsubscribe []func()
	hearing     hearing
	pace        pace
	closed      bool
}

// queue holds the callers of one client that wait for one lock, in the order of
// their arrival.
type queue struct {
	all       *queues
	id        string // of the lock
	waiters   []*waiter
	linger    drift.Timer
	contended bool // a caller had to wait since the timer fired last
	wanted    bool // a caller found the lock taken, or another caller before it
}

// linger is how long an empty queue stays: a lock that was contended will be again,
// and the next caller asks at once.
const linger = time.Second

// join adds a waiter for a lock that others have wanted lately; otherwise it returns
// nil. The first in a queue begins to ask.
//
// A caller does not join a queue that was opened because too few masters answered: an
// ask costs the masters more than an attempt, and they have too much to do already.
func (qs *queues) join(l *lock) *waiter {
	qs.mu.Lock()
	q := qs.byLock[l.kind.id()]
	if q == nil || qs.closed || len(q.waiters) == 0 && !q.wanted {
		qs.mu.Unlock()
		return nil
	}
	w := q.add(l, l.kind.claim())
	asks := w.asks()
	qs.mu.Unlock()
	if asks {
		w.askAgain()
	}
	return w
}

// enter adds a waiter whose first attempt has failed, and opens the queue of the lock
// if there is none. value is that of the attempt. If the waiter is the first, its asks
// follow on the attempt and give back what it was given; otherwise the attempt is
// given back now. Without an attempt value is empty.
func (qs *queues) enter(l *lock, cl claim, value string, failed *Error) *waiter {
	qs.mu.Lock()
	id := l.kind.id()
	q := qs.byLock[id]
	opened := q == nil
	if opened {
		q = &queue{all: qs, id: id}
		if qs.byLock == nil {
			qs.byLock, qs.asking, qs.won = map[string]*queue{}, map[string]*waiter{}, map[string]bool{}
		}
		qs.byLock[id] = q
	}
	subscribe := qs.unsubscribe == nil && !qs.closed
	if subscribe {
		qs.unsubscribe = make([]func(), 0, len(qs.client.members.Nodes()))
		qs.hearing.excuse()
	}
	w := q.add(l, cl)
	if failed != nil {
		w.failedBy(failed.Err)
		w.undone = failed // until an ask is decided: what comes before that are other votes
	}
	asks := w.asks()
	if asks && value != "" {
		w.value, w.id = value, idOf(value)
	}
	qs.mu.Unlock()
	if subscribe {
		qs.subscribe()
	}
	if opened {
		qs.client.timers.Set(&q.linger, linger, q)
	}
	if asks {
		w.askAgain()
	} else {
		l.discard(cl, value, nil)
	}
	return w
}

// add puts a new waiter at the end. The mutex is held.
func (q *queue) add(l *lock, cl claim) *waiter {
	w := &waiter{
		lock: l, claim: cl, queue: q,
		came:   max(1, l.client.mastersTime().UnixMicro()),
		ready:  make(chan struct{}, 1),
		barred: l.opt.polls,
	}
	if !l.kind.queues().atOnce {
		w.ticket = w.came
	}
	if q.all.closed {
		w.notify()
	}
	q.wanted = q.wanted || len(q.waiters) > 0
	q.waiters = append(q.waiters, w)
	return w
}

// remove takes a waiter out and returns the one that must begin to ask in its place, if
// there is one. The mutex is held.
func (q *queue) remove(w *waiter) (next *waiter) {
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	q.contended = q.contended || w.slept || len(q.waiters) > 0
	for ; i < min(len(q.waiters), mostFair) && !q.all.closed; i++ {
		if next := q.waiters[i]; i == next.lock.kind.queues().registered-1 {
			return next
		}
	}
	return nil
}

// Fire closes a queue that has been empty for a while.
func (q *queue) Fire() {
	qs := q.all
	qs.mu.Lock()
	if len(q.waiters) > 0 || q.contended {
		q.contended = false
		qs.mu.Unlock()
		qs.client.timers.Set(&q.linger, linger, q)
		return
	}
	delete(qs.byLock, q.id)
	var unsubscribe []func()
	if len(qs.byLock) == 0 {
		unsubscribe, qs.unsubscribe = qs.unsubscribe, nil
	}
	qs.mu.Unlock()
	for _, cancel := range unsubscribe {
		cancel()
	}
}

// subscribe listens at every master for what the waiters of this client are given.
func (qs *queues) subscribe() {
	for i, n := range qs.client.members.Nodes() {
		cancel := n.Subscribe(qs.hearing.channel, &ear{queues: qs, node: i})
		qs.mu.Lock()
		if qs.unsubscribe != nil {
			qs.unsubscribe, cancel = append(qs.unsubscribe, cancel), nil
		}
		qs.mu.Unlock()
		if cancel != nil {
			cancel() // all have gone meanwhile
		}
	}
}

// ear listens to one master.
type ear struct {
	queues *queues
	node   int

	// Guarded by the mutex of the queues.
	waiters []*waiter // that have to ask again
	asked   int       // waiters that did, without an answer yet
	asking  bool      // a call of askAgain has them ask
}

// Heard passes on what a waiter was given, or that it is its turn. What a waiter that
// has gone was given is given back, and its place in the queue, too: an ask on a
// connection that broke can run after the release that was sent on the next.
func (e *ear) Heard(message string) {
	said, w, gone := e.about(message)
	switch {
	case w != nil && said.Turn:
		w.turn(e.node, said.Value)
	case w != nil:
		w.hear(e.node, said.Value, said.Reply)
	case gone:
		e.withdraw(said)
	}
}

// Doubted gives back what a waiter that has gone was given, as Heard does. A waiter
// that is still there asks again.
func (e *ear) Doubted(message string) {
	if said, _, gone := e.about(message); gone {
		e.withdraw(said)
		return
	}
	e.Missed()
}

// about returns what a message says, and to whom: to a waiter, to one that has gone,
// or to one whose lease is not released yet.
func (e *ear) about(message string) (said node.Notice, w *waiter, gone bool) {
	said, ok := node.ParseNotice(message)
	id, _, ok2 := parseAsk(said.Value)
	if !ok || !ok2 {
		return said, nil, false
	}
	qs := e.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w = qs.asking[id]
	return said, w, w == nil && !qs.won[id] && !qs.closed
}

// withdraw gives back what a message is about, once at a time for each waiter and lock. A
// master that lags behind tells of a waiter that has gone with every command; a
// command for every message would make it lag even more.
func (e *ear) withdraw(said node.Notice) {
	qs, c := e.queues, e.queues.client
	id, _, _ := parseAsk(said.Value)
	who := strconv.Itoa(e.node) + " " + id + " " + said.Key // a Multi waits for several
	qs.mu.Lock()
	_, underWay := qs.withdrawn[who]
	if qs.withdrawn == nil {
		qs.withdrawn = map[string]bool{}
	}
	qs.withdrawn[who] = underWay
	qs.mu.Unlock()
	if underWay {
		return
	}
	c.members.Nodes()[e.node].Do(node.Withdraw(c.opt.prefix, said, c.opt.ttl), func(r node.Reply) {
		qs.mu.Lock()
		again := qs.withdrawn[who] && !qs.closed
		delete(qs.withdrawn, who)
		qs.mu.Unlock()
		if again && r.Err == nil {
			e.withdraw(said) // it may have been given more since
		}
	})
}

// ended forgets the waiter that won a lease which is released now.
func (qs *queues) ended(value string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.won) > 0 {
		delete(qs.won, idOf(value))
	}
}

// Missed has the waiters ask that master again.
func (e *ear) Missed() {
	qs := e.queues
	qs.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(qs.asking)) {
		if w := qs.asking[id]; !w.listed.Has(e.node) {
			w.listed |= quorum.Only(e.node)
			e.waiters = append(e.waiters, w)
		}
	}
	qs.mu.Unlock()
	e.askAgain()
}

// askAgain has waiters ask again that may: a master that has not answered so many of
// them is asked by the next one when it has answered (L46).
func (e *ear) askAgain() {
	mu := &e.queues.mu
	mu.Lock()
	if e.asking {
		mu.Unlock()
		return
	}
	e.asking = true
	for e.asked < mostRepeats && len(e.waiters) > 0 {
		w := e.waiters[0]
		e.waiters = e.waiters[1:]
		w.listed &^= quorum.Only(e.node)
		e.asked++
		mu.Unlock()
		asked := w.missed(e.node, e.answered)
		mu.Lock()
		if !asked {
			e.asked--
		}
	}
	e.asking = false
	mu.Unlock()
}

// answered has the next waiter ask again.
func (e *ear) answered() {
	e.queues.mu.Lock()
	e.asked--
	e.queues.mu.Unlock()
	e.askAgain()
}

// close ends every wait. The masters forget all registered waiters, so that nothing is
// given to a client that has gone (L16, L17).
func (qs *queues) close() {
	qs.mu.Lock()
	qs.closed = true
	var registered []*waiter
	var discard []string
	for _, id := range slices.Sorted(maps.Keys(qs.asking)) {
		if qs.won[id] {
			continue // its lease is in use, and is ended before it is released
		}
		w := qs.asking[id]
		w.over = true
		registered, discard = append(registered, w), append(discard, w.giveUp())
	}
	for _, id := range slices.Sorted(maps.Keys(qs.byLock)) {
		for _, w := range qs.byLock[id].waiters {
			w.notify()
		}
	}
	qs.mu.Unlock()
	for i, w := range registered {
		w.discard(discard[i])
	}
}
