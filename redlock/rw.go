package redlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// RWMutex is a lock that either one writer or any number of readers hold. Readers that
// come after a writer began to wait get in behind it, so a stream of readers does not
// keep writers out. Each reader and writer has its own TTL. An RWMutex is a handle
// without state, like Mutex, and safe for concurrent use.
//
// Use a name either for Mutexes or for RWMutexes: a Mutex does not see readers.
type RWMutex struct{ write, read lock }

// RWMutex returns the read-write lock of that name. Every operation reports options
// that are out of range, before it sends anything.
func (c *Client) RWMutex(name string, opts ...RWMutexOption) *RWMutex {
	rw := c.readWrite(name)
	m := &RWMutex{write: lockWith(c, name, rw.writers(name), opts), read: lockWith(c, name, rw.readers(name), opts)}
	nest := any(holder{c, "rw:" + name})
	m.write.nest, m.read.nest = nest, nest
	m.write.values.Mark = values.Writes
	return m
}

// Lock waits until it holds the lock for writing, or ctx ends; see Mutex.Lock.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) { return m.write.acquire(ctx) }

// TryLock makes one attempt to hold the lock for writing; see Mutex.TryLock.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return m.write.try(ctx) }

// RLock waits until it holds the lock for reading, or ctx ends.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) { return m.read.acquire(ctx) }

// RLocker returns a Locker whose Lock and TryLock are RLock and TryRLock.
func (m *RWMutex) RLocker() Locker { return readLocker{m} }

type readLocker struct{ m *RWMutex }

func (r readLocker) Lock(ctx context.Context) (*Lease, error)    { return r.m.RLock(ctx) }
func (r readLocker) TryLock(ctx context.Context) (*Lease, error) { return r.m.TryRLock(ctx) }

// TryRLock makes one attempt to hold the lock for reading. It is refused while a
// writer waits.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) { return m.read.try(ctx) }

// Downgrade turns a lease for writing into one for reading, without letting go of the
// lock: no other client writes in between. From the call on the lease is for reading,
// whatever it returns; ErrNoQuorum says that readers may be kept out a little longer,
// because too few masters know yet: renewals tell them, or another call. It extends the lease by its TTL, as Lease.Extend does,
// also with NoRenew. Downgrade does not change a lease for reading; for a lease of another
// lock it returns ErrNotHeld. An upgrade does not exist: two readers would wait for each
// other to leave.
func (m *RWMutex) Downgrade(ctx context.Context, lease *Lease) error {
	if lease == nil || lease.lock.nest != m.write.nest {
		return &Error{Op: "downgrade", Name: m.write.name, Err: fmt.Errorf("%w: the lease is not of this read-write lock", ErrNotHeld)}
	}
	w, writes := lease.claim.(*writing)
	if !writes {
		return nil
	}
	w.downgraded.Store(true)
	err := lease.Extend(ctx, lease.ttlNow())
	if e, ok := err.(*Error); ok {
		failed := *e // observers have the other one
		failed.Op = "downgrade"
		return &failed
	}
	return err
}

// shared reports whether others may hold the lock at the same time, for reading.
func (l *Lease) shared() bool {
	switch c := l.claim.(type) {
	case reading:
		return true
	case *writing:
		return c.downgraded.Load()
	}
	return false
}

// readWrite is what readers and writers have in common.
type readWrite struct {
	keys wire.ReadWrite
}

func (c *Client) readWrite(name string) *readWrite {
	return &readWrite{wire.ReadWriteOf(c.opt.prefix, name)}
}

// writers and readers are the two kinds of a read-write lock. The masters notify waiters
// of their turn: a lock for many cannot be handed over to one.

func (rw *readWrite) writers(name string) kind {
	return kind{id: "write:" + name, label: "write", registered: 1, claim: func() claim { return &writing{readWrite: rw} }}
}

func (rw *readWrite) readers(name string) kind {
	return kind{id: "read:" + name, label: "read", registered: waiting.MostRegistered, claim: func() claim { return reading{rw} }}
}

// writing is the claim of a writer, and of a reader that was a writer.
//
// Invariant: a downgraded writer counts as a reader from before the first master is asked
// to store that. Its renewals downgrade it at the masters that were not reached.
type writing struct {
	*readWrite
	downgraded atomic.Bool
}

func (w *writing) Acquire(value string, ttl time.Duration) *wire.Command {
	return w.keys.Write(wire.OpAcquire, value, ttl, 0)
}

func (w *writing) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return w.keys.Write(wire.OpAsk, value, stay, ticket)
}

func (w *writing) extend(value string, ttl time.Duration) *wire.Command {
	if w.downgraded.Load() {
		return w.keys.ExtendReader(value, ttl)
	}
	return w.keys.ExtendWriter(value, ttl)
}

func (w *writing) repair(value string, ttl time.Duration) *wire.Command {
	if w.downgraded.Load() {
		return w.keys.RepairReader(value, ttl)
	}
	return w.keys.RepairWriter(value, ttl)
}

// reading is the claim of a reader.
type reading struct{ *readWrite }

func (r reading) Acquire(value string, ttl time.Duration) *wire.Command {
	return r.keys.Read(wire.OpAcquire, value, ttl, 0)
}

func (r reading) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return r.keys.Read(wire.OpAsk, value, stay, ticket)
}

func (r reading) extend(value string, ttl time.Duration) *wire.Command {
	return r.keys.ExtendReader(value, ttl)
}

func (r reading) repair(value string, ttl time.Duration) *wire.Command {
	return r.keys.RepairReader(value, ttl)
}

func (rw *readWrite) release(value string, ttl time.Duration) *wire.Command {
	return rw.keys.Release(value, ttl)
}

// Judge is described at claim.
func (rw *readWrite) Judge(op wire.Op, r wire.Reply) quorum.Vote {
	if vote, ok := leaseVote(op, r); ok {
		return vote
	}
	_, refused := wire.AskRefusal(r)
	return taken(wire.Granted(r), refused)
}
