package node

import (
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Observable is a Node that tells what happens to it.
type Observable interface {
	// Observe has f called with how the node stands, and from then on with every
	// event, in order, one at a time, outside every mutex. It is called once, before
	// Close. f must not call Close, which waits until f was told of everything.
	Observe(f func(Event))
}

// Event is something that happened to a node.
type Event struct {
	Kind EventKind
	Rest time.Duration // for which the node is quarantined, for EventQuarantined
	Err  error         // why, an *Error; nil if there is nothing wrong
}

// EventKind tells events apart. Package redlock has more of them, of locks and leases.
type EventKind string

// A node that begins to be observed tells how it stands by the same events.
const (
	EventConnected    EventKind = "connected"    // it takes commands
	EventDisconnected EventKind = "disconnected" // the connection was lost, or there was none to begin with; Err says why
	EventSilent       EventKind = "silent"       // connected, but without any answer for a while: no acquires are sent; Err is ErrSilent
	EventAnswering    EventKind = "answering"    // it answers again, on the same connection
	EventQuarantined  EventKind = "quarantined"  // it may have forgotten locks, and must not grant for Rest; Err says why
	EventAdmitted     EventKind = "admitted"     // it may grant again
)

// events are not delivered yet. They wait for a thread of their own, so
// that a slow listener never holds up the connection.
type events struct {
	observer func(Event) // nil: no listener
	untold   []Event
	telling  chan struct{} // closed when all events are delivered; nil: no events
}

// Observe is described at Observable.
func (m *Master) Observe(f func(Event)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events.observer = f
	if m.trust.kept {
		m.happened(m.quarantined(m.trust.guard.Rest()))
	}
	switch m.contact.state {
	case StateConnected:
		m.happened(Event{Kind: EventConnected})
		if c := m.live.Load(); c != nil && c.silent.Load() {
			m.happened(m.fellSilent())
		}
	case StateDown:
		m.happened(Event{Kind: EventDisconnected, Err: m.contact.outage.failure(0)})
	}
}

// happened has the observer told. The mutex is held, so that the order of events
// is the order of the events. A closed node has none.
func (m *Master) happened(e Event) {
	if m.events.observer == nil || m.contact.state == StateClosed {
		return
	}
	m.events.untold = append(m.events.untold, e)
	if m.events.telling == nil {
		m.events.telling = make(chan struct{})
		m.threads.Go(m.tellEvents)
	}
}

// tellEvents delivers events until all are delivered.
func (m *Master) tellEvents() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.events.untold) > 0 {
		untold, observer := m.events.untold, m.events.observer
		m.events.untold = nil
		m.mu.Unlock()
		for _, e := range untold {
			observer(e)
		}
		m.mu.Lock()
	}
	close(m.events.telling)
	m.events.telling = nil
}

// awaitTold waits until the observer was told of everything.
func (m *Master) awaitTold() {
	m.mu.Lock()
	telling := m.events.telling
	m.mu.Unlock()
	if telling != nil {
		m.threads.Await(telling)
	}
}

func (m *Master) quarantined(rest time.Duration) Event {
	return Event{Kind: EventQuarantined, Rest: rest, Err: &wire.Error{Node: m.Addr(), Err: guard.Quarantine(rest, m.trust.reason)}}
}

func (m *Master) fellSilent() Event {
	return Event{Kind: EventSilent, Err: &wire.Error{Node: m.Addr(), Err: ErrSilent}}
}
