package waiting

import (
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/quorum"
)

// Queues are the locks that callers of one client wait for, each with a queue. For
// each lock the first callers in the queue are registered at the masters, as many as
// the lock can serve together: a thousand waiters for a mutex ask no more often than one.
type Queues struct {
	Client

	mu          seam.Mutex
	byLock      map[string]*queue
	known       map[string]known // registered waiters, and those that have left with a lease that is not released yet, by id
	owed        time.Duration    // see yields
	withdrawn   map[string]bool  // departed waiters being withdrawn at a master; true: it has sent another message about one since
	ears        []ear            // one for each master
	unsubscribe []func()
	hearing     hearing
	pace        pace
	trip        time.Duration // of the last ask that answers decided, and no timeout
	listens     bool          // while it has no waiters, too: see Listen
	closed      bool
}

// known is a waiter that messages may be about.
type known struct {
	waiter *Waiter // nil: it has left with a lease
	turn   turn
}

// queue holds the callers of one client that wait for one lock in the same way, in the
// order of their arrival.
type queue struct {
	all       *Queues
	id        string // see Lock.ID
	waiters   []*Waiter
	linger    drift.Timer
	contended bool // a caller had to wait since linger fired last
	wanted    bool // a caller has found the lock taken, or another caller in the queue; see Join
	barred    bool // the last ask that wanted to queue was not allowed to
	yields    yields
}

// Client is what all waiters of one client share.
type Client struct {
	Members       *quorum.Members
	Watch         *drift.Stopwatch
	Timers        *drift.Timers
	Steps         *seam.Steps
	Logger        *slog.Logger
	Channel       string // of all waiters of the client
	Prefix        string // of all keys
	TTL           time.Duration
	RetryInterval time.Duration

	Jitter      func(time.Duration) time.Duration
	MastersTime func() time.Time
	Reason      func(error) error       // why an attempt failed, of the error that its caller gets
	Wanted      func(key, value string) // others wait for a cached lock, which this value holds
	Missed      func()                  // such a message may have been missed
	Enter       func() (open bool)      // begins what Close waits for
	Leave       func()
}

// Start makes the queues of a client, which are empty.
func (qs *Queues) Start(c Client) {
	qs.Client, qs.pace = c, pace{queues: qs, limit: mostOpen}
	qs.mu.In(c.Steps)
	qs.hearing = hearing{members: c.Members, channel: c.Channel}
	qs.byLock, qs.known, qs.withdrawn = map[string]*queue{}, map[string]known{}, map[string]bool{}
	qs.ears = make([]ear, len(c.Members.Nodes()))
	for i := range qs.ears {
		qs.ears[i] = ear{queues: qs, node: i}
	}
}

// Deaf reports whether callers wait whom too few masters can notify, so that they poll.
func (qs *Queues) Deaf() bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.unsubscribe != nil && qs.hearing.deaf
}

// Usage counts the queues, the registered waiters with those whose lease is not released
// yet, and the departed waiters that are being withdrawn.
func (qs *Queues) Usage() (queues, known, gone int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(qs.byLock), len(qs.known), len(qs.withdrawn)
}

// linger is how long an empty queue stays: a lock that was contended will probably be so again,
// and the next caller then joins the queue without an attempt before.
const linger = time.Second

// Join adds a waiter for a lock that other callers have wanted recently; otherwise it
// returns nil. The first in a queue begins to ask.
//
// A caller does not join a queue that was opened because too few masters answered: an
// ask costs the masters more than an attempt, and they have too much to do already.
func (qs *Queues) Join(l Lock) *Waiter {
	qs.mu.Lock()
	q := qs.byLock[l.ID()]
	if q == nil || len(q.waiters) == 0 && !q.wanted {
		qs.mu.Unlock()
		return nil
	}
	w, asks := q.add(l, l.NewClaim())
	qs.mu.Unlock()
	w.begins(asks)
	return w
}

// Queue adds a waiter whose first attempt has failed. It opens a queue of the lock if
// necessary. value is that of the attempt. If the waiter is the first, its asks follow on
// the attempt and take back the attempt's grants; otherwise the attempt is given back now.
// Without an attempt value is empty.
func (qs *Queues) Queue(l Lock, cl Claim, value string, failed error) *Waiter {
	qs.mu.Lock()
	q, subscribe := qs.open(l.ID())
	w, asks := q.add(l, cl)
	if failed != nil {
		w.fails(failed) // with its votes, until an ask is decided
	}
	if asks && value != "" {
		w.ask = ask{id: values.ID(value), value: value}
	}
	qs.mu.Unlock()
	if subscribe {
		qs.subscribe()
	}
	if !asks && value != "" {
		l.Discard(cl, value)
	}
	w.begins(asks)
	return w
}

// open returns the queue of a lock, which it opens if necessary, and reports whether subscribe must
// follow. The mutex is held.
func (qs *Queues) open(id string) (q *queue, subscribe bool) {
	q, ok := qs.byLock[id]
	if !ok {
		q = &queue{all: qs, id: id}
		qs.byLock[id] = q
		qs.Timers.Set(&q.linger, linger, q)
	}
	return q, qs.subscribes()
}

// add puts a new waiter at the end, and reports whether it asks the masters, rather than
// those before it. The mutex is held.
func (q *queue) add(l Lock, cl Claim) (w *Waiter, asks bool) {
	o := l.Options()
	w = &Waiter{
		lock: l, claim: cl, queue: q,
		came:  max(1, q.all.MastersTime().UnixMicro()),
		ready: make(chan struct{}, 1),
	}
	if o.Poll != nil {
		w.polls = math.MaxInt
	}
	if !o.AtOnce {
		w.ticket = w.came
	}
	if q.all.closed { // Close has ended the waits that it found, and does not come again (L16)
		w.state = finished
		w.ready <- struct{}{}
	}
	q.wanted = q.wanted || len(q.waiters) > 0
	asks = len(q.waiters) < o.Registered
	w.told = !asks
	q.waiters = append(q.waiters, w)
	return w, asks
}

// begins has the waiter ask, or tells the observer that it waits behind others.
func (w *Waiter) begins(asks bool) {
	if asks {
		w.post(event{kind: isFirst})
	} else {
		w.lock.Waits()
	}
}

// remove takes a waiter out. It returns the waiter that must begin to ask in its place,
// or nil. The mutex is held.
func (q *queue) remove(w *Waiter) (next *Waiter) {
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	q.contended = q.contended || w.failed != nil || len(q.waiters) > 0
	last := w.lock.Options().Registered - 1 // of all that wait here
	if i > last || last >= len(q.waiters) || q.all.closed {
		return nil
	}
	return q.waiters[last]
}

// Fire closes a queue that has been empty for a while.
func (q *queue) Fire() {
	qs := q.all
	qs.mu.Lock()
	if len(q.waiters) > 0 || q.contended {
		q.contended = false
		qs.mu.Unlock()
		qs.Timers.Set(&q.linger, linger, q)
		return
	}
	delete(qs.byLock, q.id)
	var unsubscribe []func()
	if len(qs.byLock) == 0 && !qs.listens {
		unsubscribe, qs.unsubscribe = qs.unsubscribe, nil
	}
	qs.mu.Unlock()
	for _, cancel := range unsubscribe {
		cancel()
	}
}

// Listen keeps the client subscribed while it has no waiters: masters tell it when other clients
// wait for its cached locks.
func (qs *Queues) Listen() {
	qs.mu.Lock()
	qs.listens = true
	subscribe := qs.subscribes()
	qs.mu.Unlock()
	if subscribe {
		qs.subscribe()
	}
}

// Expect has the next callers of this client queue for a lock that is left to others: without a queue
// they would take it from those that are only told that it is free (L74, L78).
func (qs *Queues) Expect(l Lock) {
	qs.mu.Lock()
	if qs.closed {
		qs.mu.Unlock()
		return
	}
	q, subscribe := qs.open(l.ID())
	q.wanted, q.contended = true, true // so it stays for a linger at least
	qs.mu.Unlock()
	if subscribe {
		qs.subscribe()
	}
}

// Why returns why the first waiter for a lock waits: nil if there is none, or its first ask is not
// decided yet.
func (qs *Queues) Why(l Lock) error {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byLock[l.ID()]
	if q == nil || len(q.waiters) == 0 || q.waiters[0].failed == errTooLate {
		return nil
	}
	return q.waiters[0].failed
}

// subscribes reports whether the caller must subscribe. The mutex is held.
func (qs *Queues) subscribes() bool {
	if qs.unsubscribe != nil || qs.closed {
		return false
	}
	qs.unsubscribe = make([]func(), 0, len(qs.ears))
	qs.hearing.excuse()
	return true
}

// subscribe listens at every master for what the waiters of this client are granted.
func (qs *Queues) subscribe() {
	for i, n := range qs.Members.Nodes() {
		cancel := n.Subscribe(qs.hearing.channel, &qs.ears[i])
		qs.mu.Lock()
		if qs.unsubscribe != nil {
			qs.unsubscribe, cancel = append(qs.unsubscribe, cancel), nil
		}
		qs.mu.Unlock()
		if cancel != nil {
			cancel() // all waiters have left meanwhile
		}
	}
}

// Ended forgets the waiter that won a lease which is released now.
func (qs *Queues) Ended(value string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.known, values.ID(value))
}

// Close ends every wait. The masters forget all registered waiters, so that they grant
// nothing to a departed client (L16, L17).
func (qs *Queues) Close() {
	qs.mu.Lock()
	qs.closed = true
	var waiters []*Waiter
	var effects []effects
	for _, id := range slices.Sorted(maps.Keys(qs.byLock)) {
		for _, w := range qs.byLock[id].waiters {
			waiters, effects = append(waiters, w), append(effects, w.advance(event{kind: clientClosed, closed: true}))
		}
	}
	qs.mu.Unlock()
	for i, w := range waiters {
		w.do(effects[i])
	}
}
