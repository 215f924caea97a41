package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redsync "github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// Four clients of this library and four of redsync increase one counter, each
// reading it, letting the others run, and writing it back. On the wire both are
// the same lock, so that no update is lost.
func TestReal_mixed_fleet_loses_no_update(t *testing.T) {
	t.Parallel()
	const each = 25
	ms := startMasters(t, 5)
	counter := newSection(t)
	var all sync.WaitGroup
	contend := func(turn func() error) {
		all.Go(func() {
			for range each {
				if err := turn(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	limited, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for range 4 {
		c := ms.client(t, redlock.WithTTL(time.Minute), redlock.WithRetryInterval(5*time.Millisecond)) // redsync wakes nobody
		m := c.Mutex("counter")
		contend(func() error { return redlock.Do(limited, m, func(context.Context) error { return counter.enter() }) })

		var pools []redsyncredis.Pool
		for _, s := range ms {
			pools = append(pools, redsyncredigo.NewPool(newPool(t, s)))
		}
		contend(func() error {
			m := redsync.New(pools...).NewMutex("counter", redsync.WithExpiry(time.Minute), redsync.WithTries(100_000),
				redsync.WithRetryDelayFunc(func(int) time.Duration { return 4*time.Millisecond + rand.N(8*time.Millisecond) }))
			if err := m.LockContext(limited); err != nil {
				return err
			}
			if err := counter.enter(); err != nil {
				return err
			}
			_, err := m.UnlockContext(limited)
			return err
		})
	}

	all.Wait()

	if got := counter.count(t); got != 8*each {
		t.Errorf("the counter is %d after %d updates", got, 8*each)
	}
	ms.mustBeFreeSoon(t, "counter")
}

// section is what a lock protects: a counter in a storage of its own, which is
// read, and written back after a round trip.
type section struct {
	storage *redis.Pool
	inside  atomic.Int64
}

func newSection(t *testing.T) *section {
	return &section{storage: newPool(t, redistest.Start(t))}
}

// enter increases the counter, and fails if somebody else is inside.
func (s *section) enter() error {
	defer s.inside.Add(-1)
	if n := s.inside.Add(1); n != 1 {
		return fmt.Errorf("%d clients hold the lock", n)
	}
	conn := s.storage.Get()
	defer conn.Close()
	seen, err := redis.Int(conn.Do("GET", "counter"))
	if err != nil && err != redis.ErrNil {
		return err
	}
	_, err = conn.Do("SET", "counter", seen+1)
	return err
}

func (s *section) count(t *testing.T) int {
	t.Helper()
	conn := s.storage.Get()
	defer conn.Close()
	n, err := redis.Int(conn.Do("GET", "counter"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
