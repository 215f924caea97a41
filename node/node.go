// Package node is one Redis master as the coordinator sees it: the asynchronous Node
// interface and the transport over a connection. What commands and answers look like is in
// package wire, and whether a master may vote in package guard.
//
// It is for package redlock. Users meet its errors (ErrDown, ErrTimeout, ...) when they look into
// a failure: errors.Is finds them in the errors of redlock. They meet Status in Client.Nodes, and
// the kinds of events (EventConnected, ...) in an observer. The rest may change at any time.
package node

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Node is one Redis master, asked asynchronously.
//
// Commands given to one Node run at the master in the order of the calls to Do: a
// release that was given after its acquire can never overtake it. Because of that
// order an attempt that was given up needs no bookkeeping beyond "release everywhere"
// (L3).
//
// Implementations are safe for concurrent use.
type Node interface {
	// Addr names the node in errors, votes and logs.
	Addr() string

	// Do asks the node to run cmd and never blocks. done is called exactly once, from
	// any goroutine, possibly before Do returns; it must not block. The caller must not
	// change cmd before done was called.
	//
	// Do has no timeout of its own: the round that asked decides how long to wait for
	// an answer. An answer that comes later is still delivered.
	Do(cmd *wire.Command, done func(wire.Reply))

	// Subscribe tells the listener of every message on channel, until cancel is
	// called; it may be told once more after that. Messages can be lost, so every
	// wait also needs a timer (L12).
	Subscribe(channel string, l Listener) (cancel func())

	// Close closes the connections. Commands that are still unanswered fail
	// with ErrClosed.
	Close() error
}

// Listener receives the messages on one channel of one master, one after
// another. Its methods must not block; they are called from any goroutine,
// possibly before Subscribe returns.
type Listener interface {
	// Heard takes a message of this master, which has not lost its memory
	// since.
	Heard(message string)
	// Doubted takes a message of this master, which may have lost its memory since, or
	// was not heard for too long. A grant in it does not count, although the master
	// stores it.
	Doubted(message string)
	// Missed says that messages may have been missed, or that the master grants
	// again: when the subscription is first confirmed, after every reconnect, and
	// when a quarantine has ended.
	Missed()
}

// Subscribed is a Node that knows whether its master sends it the messages of a channel.
// Any other Node is taken to receive every channel that it subscribes to.
type Subscribed interface {
	// Subscribed reports whether a listener of the channel gets messages now: the
	// master has confirmed that, and the connection stands.
	Subscribed(channel string) bool
}

// Owing is a Node that knows which releases its master has not confirmed.
type Owing interface {
	// Owed returns them: the releases under way, and the releases to be sent again.
	Owed() []*wire.Command
	// Paid has f called, from any goroutine, whenever the last of them is confirmed or worth
	// nothing any more. f must not block.
	Paid(f func())
}

// Voting is a Node that knows whether its master would be asked for a vote now.
type Voting interface {
	// Votes returns nil if it would, and otherwise why not: the *wire.Error of a vote that was
	// not asked for.
	Votes() error
}

// Storing is a Node that knows whether its master stores what it is asked to.
type Storing interface {
	// Stores returns nil if it does, as far as is known, and otherwise how it has refused a lock just now.
	Stores() error
}

// Clocked is a Node that knows its master's clock.
type Clocked interface {
	// MasterTime returns what the master's clock says now, as its last answer tells, and
	// whether it has told at all. Our own wall clock plays no part.
	MasterTime() (time.Time, bool)
}

// Watching is a Node that refuses the votes of its master when that one's clock was set
// forward.
type Watching interface {
	// Unnoticed is how far the clock may be set forward while a lease lasts without any
	// client noticing. It is given up of every validity.
	Unnoticed() time.Duration
	// Pace is how many seconds pass by the clocks of most masters of the group in one
	// second of ours, at least; 1 if that is less. While our own clock is not measured
	// yet, it is how many seconds that may be at most.
	Pace() float64
}

// Resting is a Node that looks at its master with every heartbeat, but not while nobody uses it.
type Resting interface {
	// Idle sets f, which every heartbeat calls, once a second: if f returns true the heartbeat does not
	// look. f is called from any goroutine and must not block.
	Idle(f func() bool)
	// Look looks at the master now if it is connected, unless a look is under way. A look that is given
	// to Do after that is answered later.
	Look()
}

// Renewing is a Node that tells when holders should renew their leases.
type Renewing interface {
	// Renew has f called from any goroutine: with all set when the master has lost its memory,
	// or when our clock is slower than it seemed; without when the master is connected, for
	// leases whose keys it may lack and leases that are overdue. f must not block.
	Renew(f func(all bool))
}
