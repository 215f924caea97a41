package main

import (
	"context"
	"strings"
	"time"

	"github.com/bsm/redislock"
	goredisv9 "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/quorumlock/quorumlock/bench"
)

// rueidisLock keeps three keys on one server (or in one cluster), not on
// independent masters, and renews by itself. Waiting is by client-side caching.
func rueidisLock() bench.Subject {
	return bench.Subject{Name: "rueidislock on one", Nodes: 1, Open: func(_ context.Context, urls []string) (bench.Client, error) {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(urls[0], "redis://")}},
			KeyValidity:    bench.TTL,
			ExtendInterval: bench.TTL / 3,
			NoLoopTracking: true,
		})
		if err != nil {
			return nil, err
		}
		return rueidisClient{locker}, nil
	}}
}

type rueidisClient struct{ locker rueidislock.Locker }

func (c rueidisClient) Close() error                  { c.locker.Close(); return nil }
func (c rueidisClient) Mutex(name string) bench.Mutex { return rueidisMutex{c.locker, name} }

type rueidisMutex struct {
	locker rueidislock.Locker
	name   string
}

func (m rueidisMutex) Lock(ctx context.Context) (bench.Lease, error) {
	held, release, err := m.locker.WithContext(ctx, m.name)
	if err != nil {
		return nil, err
	}
	return rueidisLease{held, release}, nil
}

type rueidisLease struct {
	held    context.Context
	release context.CancelFunc
}

func (l rueidisLease) Lost() bool                   { return l.held.Err() != nil }
func (l rueidisLease) Unlock(context.Context) error { l.release(); return nil }

// redisLock is a lock on one server. Waiting is by asking again.
func redisLock() bench.Subject {
	return bench.Subject{Name: "redislock on one", Nodes: 1, Open: func(_ context.Context, urls []string) (bench.Client, error) {
		redis := goredisv9.NewClient(&goredisv9.Options{Addr: strings.TrimPrefix(urls[0], "redis://"), PoolSize: 256})
		return redisLockClient{redis, redislock.New(redis)}, nil
	}}
}

type redisLockClient struct {
	redis *goredisv9.Client
	locks *redislock.Client
}

func (c redisLockClient) Close() error                  { return c.redis.Close() }
func (c redisLockClient) Mutex(name string) bench.Mutex { return redisLockMutex{c.locks, name} }

type redisLockMutex struct {
	locks *redislock.Client
	name  string
}

func (m redisLockMutex) Lock(ctx context.Context) (bench.Lease, error) {
	lock, err := m.locks.Obtain(ctx, m.name, bench.TTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return redisLockLease{lock}, nil
}

type redisLockLease struct{ lock *redislock.Lock }

func (l redisLockLease) Unlock(ctx context.Context) error { return l.lock.Release(ctx) }
