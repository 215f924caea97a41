package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/monitor"
)

// Redigo is the floor: SET NX PX and compare-and-delete on one master, each
// caller with a connection of its own, no library in between.
func Redigo() Subject {
	return Subject{Name: "redigo on one", Nodes: 1, Open: func(_ context.Context, urls []string) (Client, error) {
		return &direct{url: urls[0]}, nil
	}}
}

// RedigoPool is the same with a connection pool that keeps size connections, as
// services have it.
func RedigoPool(size int) Subject {
	return Subject{Name: "redigo pool on one", Nodes: 1, Open: func(_ context.Context, urls []string) (Client, error) {
		return &pooled{NewPool(urls[0], size)}, nil
	}}
}

// NewPool returns a redigo pool that keeps size connections.
func NewPool(url string, size int, opts ...redis.DialOption) *redis.Pool {
	return &redis.Pool{MaxIdle: size, Dial: func() (redis.Conn, error) { return monitor.Dial(url, opts...) }}
}

// RedigoPolling is Redigo that waits: it asks again a millisecond after each
// answer, as programs without a library do.
func RedigoPolling() Subject {
	s := Redigo()
	s.Name = "redigo polling"
	open := s.Open
	s.Open = func(ctx context.Context, urls []string) (Client, error) {
		c, err := open(ctx, urls)
		return polling{c}, err
	}
	return s
}

type polling struct{ Client }

func (c polling) Mutex(name string) Mutex { return pollingMutex{c.Client.Mutex(name)} }

type pollingMutex struct{ Mutex }

func (m pollingMutex) Lock(ctx context.Context) (Lease, error) {
	for {
		lease, err := m.Mutex.Lock(ctx)
		if !errors.Is(err, errTaken) || ctx.Err() != nil {
			return lease, err
		}
		time.Sleep(time.Millisecond)
	}
}

type direct struct {
	url   string
	mu    sync.Mutex
	conns []redis.Conn
}

func (c *direct) Mutex(name string) Mutex {
	conn, err := monitor.Dial(c.url)
	if err != nil {
		return broken{err}
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	return &redigoMutex{name: name, get: func() redis.Conn { return keptOpen{conn} }}
}

// keptOpen is a connection that its user does not close.
type keptOpen struct{ redis.Conn }

func (keptOpen) Close() error { return nil }

func (c *direct) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

type pooled struct{ *redis.Pool }

func (c *pooled) Mutex(name string) Mutex { return &redigoMutex{name: name, get: c.Get} }

type redigoMutex struct {
	name string
	get  func() redis.Conn
}

const redigoValue = "one value for all"

var releaseScript = redis.NewScript(1, `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

func (m *redigoMutex) Lock(context.Context) (Lease, error) {
	conn := m.get()
	defer conn.Close()
	ok, err := redis.String(conn.Do("SET", m.name, redigoValue, "NX", "PX", TTL.Milliseconds()))
	switch {
	case errors.Is(err, redis.ErrNil):
		return nil, errTaken
	case err != nil:
		return nil, err
	case ok != "OK":
		return nil, fmt.Errorf("SET answered %q", ok)
	}
	return m, nil
}

func (m *redigoMutex) Unlock(context.Context) error {
	conn := m.get()
	defer conn.Close()
	n, err := redis.Int(releaseScript.Do(conn, m.name, redigoValue))
	if err == nil && n != 1 {
		return errNotHeld
	}
	return err
}

// broken is a Mutex that could not be made.
type broken struct{ err error }

func (b broken) Lock(context.Context) (Lease, error) { return nil, b.err }
