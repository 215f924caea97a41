package bench

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	adapter "github.com/go-redsync/redsync/v4/redis/redigo"
	pool "github.com/gomodule/redigo/redis"
)

// Redsync is the most used Redlock for Go, as its README has it, over redigo
// pools that keep size connections for each master.
func Redsync(nodes, size int) Subject {
	return redsyncOver(on("redsync", nodes), nodes, size, nil)
}

// RedsyncTuned is redsync set up for the best hand-off: it asks again so soon
// after each refusal, for as long as it takes, does not wait for all answers,
// and gives one 50 ms.
func RedsyncTuned(nodes, size int, again time.Duration) Subject {
	limit := 50 * time.Millisecond
	return redsyncOver("redsync tuned", nodes, size,
		[]redsync.Option{redsync.WithFailFast(true), redsync.WithTries(1 << 20), redsync.WithRetryDelay(again)},
		pool.DialConnectTimeout(limit), pool.DialReadTimeout(limit), pool.DialWriteTimeout(limit))
}

func redsyncOver(name string, nodes, size int, options []redsync.Option, dialing ...pool.DialOption) Subject {
	return Subject{Name: name, Nodes: nodes, Open: func(_ context.Context, urls []string) (Client, error) {
		c := &redsyncOverRedigo{options: append([]redsync.Option{redsync.WithExpiry(TTL)}, options...)}
		var adapters []redis.Pool
		for _, url := range urls {
			p := NewPool(url, size, dialing...)
			c.pools = append(c.pools, p)
			adapters = append(adapters, adapter.NewPool(p))
		}
		c.Redsync = redsync.New(adapters...)
		return c, nil
	}}
}

type redsyncOverRedigo struct {
	*redsync.Redsync
	options []redsync.Option
	pools   []*pool.Pool
}

func (c *redsyncOverRedigo) Mutex(name string) Mutex {
	return RedsyncMutex(func() *redsync.Mutex { return c.NewMutex(name, c.options...) })
}

func (c *redsyncOverRedigo) Close() error {
	var errs []error
	for _, p := range c.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// RedsyncMutex makes a new redsync.Mutex for each lock, as its users do.
type RedsyncMutex func() *redsync.Mutex

// Lock makes the tries that redsync makes.
func (make RedsyncMutex) Lock(ctx context.Context) (Lease, error) {
	m := make()
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncLease{m}, nil
}

type redsyncLease struct{ m *redsync.Mutex }

// Extend extends by TTL from now, for users who renew by themselves.
func (l redsyncLease) Extend(ctx context.Context) error { return done(l.m.ExtendContext(ctx)) }
func (l redsyncLease) Unlock(ctx context.Context) error { return done(l.m.UnlockContext(ctx)) }

func done(ok bool, err error) error {
	if err == nil && !ok {
		return errNotHeld
	}
	return err
}
