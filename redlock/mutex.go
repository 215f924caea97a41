package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// Mutex is a mutual exclusion lock held by a quorum of the masters. It is a
// handle without state: two Lock calls on one Mutex exclude each other like
// those of two processes. Safe for concurrent use.
//
// On the wire it is the lock of the Redlock specification: the key is prefix
// and name, taken with SET NX PX, deleted by comparing the value. Clients of
// other libraries that use the same masters are excluded, and exclude.
type Mutex struct {
	lock lock
}

// Mutex returns the lock of that name. Options that are out of range are
// reported by every operation of the Mutex, before anything is sent.
func (c *Client) Mutex(name string, opts ...LockOption) *Mutex {
	return &Mutex{c.lock(name, newExclusive(c.opt.prefix, name), opts)}
}

// Name returns the name the Mutex was made with.
func (m *Mutex) Name() string { return m.lock.name }

// Lock waits until the lock is acquired or ctx ends. It keeps trying while
// somebody else holds the lock and while no quorum can be reached; when ctx
// ends, the error tells also which of the two it was: errors.Is finds
// ctx's error, and ErrTaken or ErrNoQuorum.
//
// The lease's context carries the values of ctx but not its cancellation: a
// timeout for getting the lock is not a timeout for using it.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) { return m.lock.acquire(ctx) }

// TryLock makes one attempt: ErrTaken when somebody else holds the lock,
// ErrNoQuorum when too few nodes answered. It takes at most about one node
// timeout.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) { return m.lock.try(ctx) }

// Do runs f while holding the lock. The context given to f is derived from ctx
// and is also cancelled when the lease is lost. Do returns f's error, and
// ErrLost or ErrExpired when the lease ended before f did.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) (err error) {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	// Deferred, so that a panic in f does not leave the lock behind.
	defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()
	return f(lease.under(ctx))
}

// exclusive is the kind of a plain Mutex: one string key.
type exclusive struct {
	key    string // prefix and name
	prefix int    // how long the prefix is
}

func newExclusive(prefix, name string) *exclusive {
	return &exclusive{key: prefix + name, prefix: len(prefix)}
}

func (e *exclusive) acquire(value string, ttl time.Duration) *node.Command {
	return node.Acquire(e.key, value, ttl)
}

func (e *exclusive) probe(value string, ttl time.Duration, line node.Line) *node.Command {
	return node.ProbeInLine(e.key, value, ttl, line)
}

func (e *exclusive) extend(value string, ttl time.Duration) *node.Command {
	return node.Extend(e.key, value, ttl)
}

func (e *exclusive) repair(value string, ttl time.Duration) *node.Command {
	return node.Repair(e.key, value, ttl)
}

func (e *exclusive) release(value string, ttl time.Duration, wake wakeup) *node.Command {
	line := ""
	if wake {
		line = e.line()
	}
	return node.Release(e.key, value, line, ttl)
}

func (e *exclusive) taken(r node.Reply) quorum.Vote {
	if r.Value == "OK" {
		return quorum.Granted
	}
	return quorum.Refused
}

func (e *exclusive) extended(r node.Reply) quorum.Vote {
	if r.Value == int64(1) {
		return quorum.Granted
	}
	return quorum.Refused
}

func (e *exclusive) absent(r node.Reply) bool { return r.Err == nil && r.Value == int64(0) }

func (e *exclusive) id() string { return e.key }

func (e *exclusive) line() string {
	return e.key[:e.prefix] + reserved + "line:" + e.key[e.prefix:]
}
