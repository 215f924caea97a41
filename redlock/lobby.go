package redlock

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// lobby is where a client's callers wait for locks, one room for each lock.
type lobby struct {
	client *Client
	mu     sync.Mutex
	rooms  map[string]*room
	closed bool
}

// room is shared by the callers that wait for one lock. All contenders ask the
// same node first, the lock's gate, and stand in line there; a release wakes the
// first client in line, and that client the first in its room. The others would
// only ask in vain.
type room struct {
	lobby     *lobby
	id        string    // of the lock
	line      node.Line // where this client stands at the gate
	gate      int
	waiters   []*waiter // in order of arrival
	cancel    func()    // ends the subscription
	linger    drift.Alarm
	contended bool // somebody had to wait since the alarm rang last
}

// linger is how long a room stays subscribed after somebody last had to wait: a
// lock that was contended will be again.
const linger = time.Second

// waiter is one caller in a room.
type waiter struct {
	room  *room
	ready chan struct{} // holds one wake-up
	deaf  bool          // to releases, but not to the timer
	slept bool          // had to wait
	turn  bool          // the wake-up came from a release
	alarm drift.Alarm
}

// visit joins the room of a lock if there is one: if somebody has waited there
// lately. Otherwise it returns nil.
func (lb *lobby) visit(id string) *waiter {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	if rm := lb.rooms[id]; rm != nil {
		return rm.join()
	}
	return nil
}

// enter joins the room of a lock, and opens it if there is none.
func (lb *lobby) enter(k kind) *waiter {
	lb.mu.Lock()
	rm := lb.rooms[k.id()]
	opened := rm == nil
	if opened {
		rm = lb.open(k)
	}
	w := rm.join()
	if lb.closed || !opened {
		// The room heard of releases all along, but we did not: look once more
		// before sleeping, or a release since our attempt would be missed.
		w.notify()
	}
	gate := rm.gate
	lb.mu.Unlock()
	if opened {
		rm.listen(gate)
		lb.client.agenda.Set(&rm.linger, linger, (*roomAlarm)(rm))
	}
	return w
}

// open makes a room. The lobby's mutex is held.
func (lb *lobby) open(k kind) *room {
	rm := &room{
		lobby: lb,
		id:    k.id(),
		gate:  gateOf(k.id(), len(lb.client.panel.Nodes())),
		line: node.Line{
			Key: k.line(),
			// Of this client alone: a message wakes nobody else.
			Channel: k.line() + ":" + lb.client.self,
			Stay:    max(linger, 3*lb.client.opt.retryInterval),
		},
	}
	if lb.rooms == nil {
		lb.rooms = map[string]*room{}
	}
	lb.rooms[rm.id] = rm
	return rm
}

// join adds a waiter. The lobby's mutex is held.
func (rm *room) join() *waiter {
	w := &waiter{room: rm, ready: make(chan struct{}, 1)}
	rm.waiters = append(rm.waiters, w)
	return w
}

// isFirst reports whether nobody waits before w.
func (w *waiter) isFirst() bool {
	w.room.lobby.mu.Lock()
	defer w.room.lobby.mu.Unlock()
	return w.room.waiters[0] == w
}

// gateOf chooses the gate by name, so that all contenders choose the same and
// different locks have different gates.
func gateOf(id string, nodes int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(nodes))
}

// listen subscribes at the given gate, instead of where it did before. The node
// wakes the room when the subscription stands, so that a release before that is
// not missed.
func (rm *room) listen(gate int) {
	cancel := rm.lobby.client.panel.Nodes()[gate].Subscribe(rm.line.Channel, rm.wake)
	rm.lobby.mu.Lock()
	before := rm.cancel
	rm.cancel = cancel
	rm.lobby.mu.Unlock()
	if before != nil {
		before()
	}
}

// wake gives the turn to the first waiter, or, if nobody needs it any more, to
// the next client in line.
func (rm *room) wake() {
	lb := rm.lobby
	lb.mu.Lock()
	for _, w := range rm.waiters {
		if !w.turn && !w.deaf {
			w.turn = true
			w.notify()
			lb.mu.Unlock()
			return
		}
	}
	gate := rm.gate
	lb.mu.Unlock()
	lb.client.panel.Nodes()[gate].Do(node.WakeNext(rm.line.Key), nobodyAsks)
}

// takeTurn reports whether the wake-up came from a release, once.
func (w *waiter) takeTurn() bool {
	w.room.lobby.mu.Lock()
	defer w.room.lobby.mu.Unlock()
	turn := w.turn
	w.turn = false
	return turn
}

// notify leaves a wake-up. The lobby's mutex is held.
func (w *waiter) notify() {
	if len(w.ready) == 0 {
		w.ready <- struct{}{}
	}
}

// Ring is the waiter's timer.
func (w *waiter) Ring() {
	w.room.lobby.mu.Lock()
	defer w.room.lobby.mu.Unlock()
	w.notify()
}

// line returns where to stand in line.
func (w *waiter) line() node.Line { return w.room.line }

// gate returns the node to ask first.
func (w *waiter) gate() int {
	w.room.lobby.mu.Lock()
	defer w.room.lobby.mu.Unlock()
	return w.room.gate
}

// answered moves the room to the node that answered as the gate, if it was not
// the one where the room listens.
func (w *waiter) answered(gate int) {
	rm := w.room
	rm.lobby.mu.Lock()
	moved := rm.gate != gate
	rm.gate = gate
	rm.lobby.mu.Unlock()
	if moved {
		rm.listen(gate)
	}
}

// pause returns how long to wait if no wake-up arrives: the interval, or until
// the holder's TTL ends, for the first waiter of a room. The others are served
// in turn; they share the polling, so that a thousand of them ask no more often
// than one.
func (w *waiter) pause(interval, freeIn time.Duration) time.Duration {
	w.room.lobby.mu.Lock()
	defer w.room.lobby.mu.Unlock()
	switch {
	case w.room.waiters[0] != w:
		return interval * time.Duration(len(w.room.waiters))
	case freeIn > 0:
		return min(interval, freeIn)
	}
	return interval
}

// wait returns nil after a wake-up or after d, whichever is first, and ctx's
// error when ctx ends.
func (w *waiter) wait(ctx context.Context, d time.Duration) error {
	c := w.room.lobby.client
	w.slept = true
	c.agenda.Set(&w.alarm, d, w)
	err := c.seams.Wait(ctx, w.ready)
	c.agenda.Cancel(&w.alarm)
	return err
}

// rest is wait without wake-ups: where no quorum answers, news of a release
// would only have us ask again, and again, as fast as the nodes can fail.
func (w *waiter) rest(ctx context.Context, d time.Duration) error {
	lb := w.room.lobby
	lb.mu.Lock()
	w.deaf = true
	if len(w.ready) > 0 && !w.turn && !lb.closed {
		<-w.ready
	}
	lb.mu.Unlock()
	err := w.wait(ctx, d)
	lb.mu.Lock()
	w.deaf = false
	lb.mu.Unlock()
	return err
}

// leave ends the waiter's stay. A wake-up that it did not use goes to the next.
// The nil waiter was never in a room.
func (w *waiter) leave() {
	if w == nil {
		return
	}
	rm := w.room
	lb := rm.lobby
	lb.client.agenda.Cancel(&w.alarm)
	lb.mu.Lock()
	i := slices.Index(rm.waiters, w)
	rm.waiters = slices.Delete(rm.waiters, i, i+1)
	rm.contended = rm.contended || w.slept
	if !w.turn && len(rm.waiters) > 0 {
		rm.waiters[0].notify() // it is the first now, and not in line yet
	}
	lb.mu.Unlock()
	if w.turn {
		rm.wake()
	}
}

// roomAlarm closes a room in which nobody has waited for a while.
type roomAlarm room

func (a *roomAlarm) Ring() {
	rm := (*room)(a)
	lb := rm.lobby
	lb.mu.Lock()
	if len(rm.waiters) > 0 || rm.contended {
		rm.contended = false
		lb.mu.Unlock()
		lb.client.agenda.Set(&rm.linger, linger, a)
		return
	}
	delete(lb.rooms, rm.id)
	cancel := rm.cancel
	lb.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// close wakes everybody; they will find the client closed.
func (lb *lobby) close() {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	lb.closed = true
	for _, id := range slices.Sorted(maps.Keys(lb.rooms)) {
		for _, w := range lb.rooms[id].waiters {
			w.notify()
		}
	}
}
