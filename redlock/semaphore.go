package redlock

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

const (
	// MaxPermits is how many permits a semaphore may have.
	MaxPermits = 4096
	// MaxAcquire is how many of them one lease may have. The masters need time for each:
	// 4 us, so that they are kept from other clients for 10 ms at most.
	MaxAcquire = 2048
)

// Semaphore is a number of permits. Never more are held than there are, also when
// masters fail. A permit is a lease: it is renewed, its loss is announced, and it ends
// with a crashed holder. A Semaphore is a handle without state, like Mutex, and safe
// for concurrent use.
//
// Waiters are served in the order of their arrival, as each master knows it: a waiter
// for many permits is not passed by waiters for one.
type Semaphore struct {
	lock    lock
	name    string
	permits int
}

// Semaphore returns the semaphore of that name with so many permits. All clients must
// agree on the number; Resize changes it. Every operation reports options and numbers
// that are out of range, before it sends anything.
func (c *Client) Semaphore(name string, permits int, opts ...SemaphoreOption) *Semaphore {
	s := &Semaphore{lock: lockWith(c, name, nil, opts), name: name, permits: permits}
	s.lock.kind = s.kind(1)
	if err := checkPermits("Semaphore", permits); err != nil {
		s.lock.err = err
	}
	return s
}

func checkPermits(field string, n int) error {
	if n < 1 || n > MaxPermits {
		return fmt.Errorf("redlock: %s: %d permits: must be between 1 and %d", field, n, MaxPermits)
	}
	return nil
}

// Name returns the name the Semaphore was made with.
func (s *Semaphore) Name() string { return s.name }

// Acquire waits until it holds n permits, all or none, or ctx ends; see
// Mutex.Lock. n may be MaxAcquire at most. It fails with ErrPermits when the semaphore has another number of
// permits than this handle says, also if that changes while it waits.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.of(n).acquire(ctx)
}

// TryAcquire makes one attempt; see Mutex.TryLock. It is refused while others wait.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) { return s.of(n).try(ctx) }

// of returns the lock that n permits are.
func (s *Semaphore) of(n int) *lock {
	if n == 1 {
		return &s.lock
	}
	l := s.lock
	l.kind = s.kind(n)
	switch {
	case l.err != nil:
	case n < 1 || n > s.permits:
		l.err = fmt.Errorf("redlock: Semaphore %q: Acquire(%d): must be between 1 and its %d permits", s.name, n, s.permits)
	case n > MaxAcquire:
		l.err = fmt.Errorf("redlock: Semaphore %q: Acquire(%d): must be between 1 and %d permits for one lease", s.name, n, MaxAcquire)
	}
	return &l
}

func (s *Semaphore) kind(n int) *semaphore {
	c := s.lock.client
	start := fnv.New32a()
	start.Write([]byte(c.self)) // every client begins elsewhere, so that few meet
	return &semaphore{
		name: "permits:" + strconv.Itoa(n) + "/" + strconv.Itoa(s.permits) + ":" + s.name, of: s.name, keys: wire.PermitsOf(c.opt.prefix, s.name), n: n, total: s.permits,
		separate: c.seams.Unsafe.SeparatePermits, local: c.seams.Unsafe.CountLocally,
		start:  int(start.Sum32() % uint32(max(1, s.permits))),
		fenced: s.lock.opt.fenced, client: c,
	}
}

// Available returns how many permits are free at a majority of the masters. It is
// about a moment that has passed.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	if s.lock.err != nil {
		return 0, s.lock.err
	}
	h, err := s.lock.client.Inspect(ctx, s.name)
	if err != nil {
		return 0, err
	}
	return h.free(s.permits, quorum.Size(len(h.Nodes))), nil
}
