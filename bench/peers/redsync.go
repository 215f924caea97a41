package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redigopool "github.com/go-redsync/redsync/v4/redis/redigo"
	rueidispool "github.com/go-redsync/redsync/v4/redis/rueidis"
	redigo "github.com/gomodule/redigo/redis"
	goredisv9 "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"

	"github.com/quorumlock/quorumlock/bench"
)

// driver is a Redis client that redsync works over.
type driver struct {
	name string
	open func(addr string) (redis.Pool, func() error, error)
}

// nodeTimeout is what a careful user gives the tuned drivers for one answer.
const nodeTimeout = 50 * time.Millisecond

var (
	overRedigo  = driver{"redigo", openRedigo(0)}
	overGoRedis = driver{"go-redis", openGoRedis(goredisv9.Options{})}
	overRueidis = driver{"rueidis", openRueidis}

	// Bounded: ten thousand tickers together would ask for more connections than a
	// server accepts.
	overBoundedRedigo = driver{"redigo", openRedigo(256)}

	// Tuned: an answer that does not come within the node timeout is a failure,
	// and is not asked for again.
	overTunedRedigo = driver{"redigo", openRedigo(0,
		redigo.DialConnectTimeout(nodeTimeout), redigo.DialReadTimeout(nodeTimeout), redigo.DialWriteTimeout(nodeTimeout))}
	overTunedGoRedis = driver{"go-redis", openGoRedis(goredisv9.Options{
		DialTimeout: nodeTimeout, ReadTimeout: nodeTimeout, WriteTimeout: nodeTimeout, MaxRetries: -1, PoolSize: 256})}
)

// mode is how redsync is set up.
type mode struct {
	name    string
	options []redsync.Option
}

var (
	byDefault = mode{}
	failFast  = mode{", fail-fast", []redsync.Option{redsync.WithFailFast(true)}}
	// The best hand-off of eight settings: retry delays of 0.1, 0.3, 1 and 3 ms,
	// each with and without fail-fast.
	tuned = mode{", tuned", []redsync.Option{redsync.WithFailFast(true), redsync.WithTries(1 << 20), redsync.WithRetryDelay(300 * time.Microsecond)}}
)

// redsyncOn is redsync on n masters.
func redsyncOn(n int, d driver, m mode) bench.Subject {
	return bench.Subject{Name: "redsync, " + d.name + m.name, Nodes: n, Open: func(_ context.Context, urls []string) (bench.Client, error) {
		c := &redsyncClient{options: append([]redsync.Option{redsync.WithExpiry(bench.TTL)}, m.options...)}
		var pools []redis.Pool
		for _, url := range urls {
			pool, shut, err := d.open(strings.TrimPrefix(url, "redis://"))
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			pools, c.shut = append(pools, pool), append(c.shut, shut)
		}
		c.rs = redsync.New(pools...)
		return c, nil
	}}
}

type redsyncClient struct {
	rs      *redsync.Redsync
	options []redsync.Option
	shut    []func() error
}

func (c *redsyncClient) Mutex(name string) bench.Mutex {
	return bench.RedsyncMutex(func() *redsync.Mutex { return c.rs.NewMutex(name, c.options...) })
}

func (c *redsyncClient) Close() error {
	var errs []error
	for _, shut := range c.shut {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

// openRedigo returns pools of at most so many connections, 0: no limit.
func openRedigo(most int, opts ...redigo.DialOption) func(string) (redis.Pool, func() error, error) {
	return func(addr string) (redis.Pool, func() error, error) {
		pool := &redigo.Pool{MaxIdle: 256, MaxActive: most, Wait: true, Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", addr, opts...) }}
		return redigopool.NewPool(pool), pool.Close, nil
	}
}

func openGoRedis(o goredisv9.Options) func(string) (redis.Pool, func() error, error) {
	return func(addr string) (redis.Pool, func() error, error) {
		o := o
		o.Addr = addr
		client := goredisv9.NewClient(&o)
		return goredis.NewPool(client), client.Close, nil
	}
}

func openRueidis(addr string) (redis.Pool, func() error, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, nil, err
	}
	return rueidispool.NewPool(rueidiscompat.NewAdapter(client)), func() error { client.Close(); return nil }, nil
}
