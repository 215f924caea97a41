package bench

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Subject is one way to lock, on a number of masters.
type Subject struct {
	Name  string
	Nodes int
	// Open returns a client with connections of its own.
	Open func(ctx context.Context, urls []string) (Client, error)
	// Keys, if set, names the keys of a lock: the keys that must be gone when it is
	// released, and the keys that stay. Without it there is one, which must be gone.
	Keys func(name string) (gone, stay []string)
}

// Client is what a process has of a lock library.
type Client interface {
	// Mutex returns a handle for one goroutine.
	Mutex(name string) Mutex
	Close() error
}

// Mutex is a lock that is not held.
type Mutex interface {
	// Lock waits until it has the lock, if the library can wait.
	Lock(ctx context.Context) (Lease, error)
}

// Lease is a lock that is held.
type Lease interface {
	Unlock(ctx context.Context) error
}

// TTL is that of every lock in a benchmark.
const TTL = 30 * time.Second

// Redlock is this library. The restart guard is off: masters that have just
// been started would not grant for a TTL, and no client holds a lock that they
// could have forgotten.
func Redlock(nodes int, opts ...redlock.Option) Subject {
	opts = append([]redlock.Option{
		redlock.WithTTL(TTL), redlock.WithRestartGuard(0), redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)
	return Subject{Name: on("redlock", nodes), Nodes: nodes, Open: func(ctx context.Context, urls []string) (Client, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		c, err := redlock.Dial(ctx, urls, opts...)
		if err != nil {
			return nil, err
		}
		return redlockClient{c}, nil
	}}
}

type redlockClient struct{ *redlock.Client }

func (c redlockClient) Mutex(name string) Mutex { return redlockMutex{c.Client.Mutex(name)} }

type redlockMutex struct{ m *redlock.Mutex }

func (m redlockMutex) Lock(ctx context.Context) (Lease, error) {
	l, err := m.m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return redlockLease{l}, nil
}

type redlockLease struct{ l *redlock.Lease }

func (l redlockLease) Unlock(ctx context.Context) error { return l.l.Unlock(ctx) }

// What the subjects without a library of their own fail with.
var (
	errTaken   = errors.New("taken")
	errNotHeld = errors.New("not held")
)
