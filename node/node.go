// Package node is one Redis master as the coordinator sees it: the commands a
// lock is made of, the asynchronous Node interface, the transport over redigo,
// and the guards that decide whether a master may vote.
package node

// Node is one Redis master, asked asynchronously.
//
// Commands given to one Node run at the master in the order of the calls to
// Do: a release that was given after its acquire can never overtake it. That
// order is the reason why an attempt that was given up needs no bookkeeping
// beyond "release everywhere" (L3).
//
// Implementations are safe for concurrent use.
type Node interface {
	// Addr names the node in errors, votes and logs.
	Addr() string

	// Do asks the node to run cmd and never blocks. done is called exactly
	// once, from any goroutine, possibly before Do returns; it must not block.
	// The caller must not change cmd before done was called.
	//
	// Do has no timeout of its own: how long an answer is waited for is the
	// business of the round that asked. An answer that comes later is still
	// delivered.
	Do(cmd *Command, done func(Reply))

	// Subscribe calls wake on every message published on channel at this
	// master, and whenever messages may have been missed: when the
	// subscription is first confirmed and after every reconnect. wake must not
	// block; it is called from any goroutine, possibly before Subscribe
	// returns and once more after cancel. Wake-ups can be lost, so every wait
	// also needs a timer (L12). The returned function ends the subscription.
	Subscribe(channel string, wake func()) (cancel func())

	// Close closes the connections. Commands that are still unanswered fail
	// with ErrClosed.
	Close() error
}

// Reply is what a master answered, or why there is no answer. Values are those
// of redigo: int64, string for a status, []byte for a bulk string, nil, []any.
type Reply struct {
	Value any
	Err   *Error // nil when the master answered
}
