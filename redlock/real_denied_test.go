package redlock_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file is what happens when an operator takes a right from our user by mistake, and gives it back.

// deny takes the right to commands from ann.
func (ms realMasters) deny(t testing.TB, commands ...string) {
	t.Helper()
	for _, c := range commands {
		ms.doAll(t, "ACL", "SETUSER", "ann", "-"+c)
	}
}

func (ms realMasters) allow(t testing.TB) {
	t.Helper()
	ms.doAll(t, "ACL", "SETUSER", "ann", "+@all")
}

// L97: a right is missing at two of three masters, while locks of every kind are released for which others wait, and
// while they are acquired. When it is back, the others get them, and nothing is left: the TTL is longer than the test.
func TestReal_L97_a_right_that_is_missing_for_a_moment_leaves_no_lock_behind(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"get", "mget", "set", "del", "exists", "pttl", "pexpire", "time", "hset", "hget", "hmget", "hexists", "zadd", "zscore", "zrange", "zrangebyscore", "zcard", "zrem", "zrem hdel", "@write"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, redistest.User("ann", "pw", "~*", "&*", "+@all"))
			opts := []redlock.Option{redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(500 * time.Millisecond)}
			one, heir := ms.client(t, opts...), ms.client(t, opts...)
			all := kinds()
			leases, heirs := make([]*redlock.Lease, len(all)), make([]<-chan *redlock.Lease, len(all))
			for i, k := range all {
				leases[i], heirs[i] = k.holds(t, one), k.later(t, heir)
			}
			eventually(t, "most wait", func() bool { return ms.queues(t) >= 2*len(all) })

			ms[:2].deny(t, strings.Fields(command)...)
			for _, l := range leases {
				l.Unlock(ctx)
			}
			ms[:2].allow(t)

			for i, k := range all {
				unlocks(t, arrival(t, k.name, heirs[i]))
			}
			eventually(t, "nothing is left of them", func() bool { return len(ms.locksLeft(t)) == 0 })

			ms[:2].deny(t, strings.Fields(command)...)
			var asked sync.WaitGroup
			for _, k := range all {
				asked.Go(func() {
					within, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					defer cancel()
					if l, err := k.lock(within, one); err == nil {
						l.Unlock(ctx)
					}
				})
			}
			asked.Wait()
			ms[:2].allow(t)

			eventually(t, "nothing is left of what was asked for", func() bool { return len(ms.locksLeft(t)) == 0 })
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// later waits for the lock.
func (k aKind) later(t testing.TB, c *redlock.Client) <-chan *redlock.Lease {
	got := make(chan *redlock.Lease, 1)
	go func() {
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		l, err := k.lock(within, c)
		if err != nil {
			t.Errorf("%s: %v", k.name, err)
			return
		}
		got <- l
	}()
	return got
}

// L96: masters do not let a client queue, for a moment, and others queue afterwards. It polls for less than a second
// when it may queue again, and then it has its place before them.
func TestReal_L96_who_may_queue_again_does(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, redistest.User("ann", "pw", "~*", "&*", "+@all"))
			book := &diary{}
			opts := []redlock.Option{redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(500 * time.Millisecond)}
			first := k.holds(t, ms.client(t, opts...))
			ms[:2].deny(t, "zadd")
			barred := k.later(t, ms.client(t, append(opts, redlock.WithLogger(slog.New(book)))...))
			eventually(t, "it may not queue", func() bool { return book.said("not allowed to queue") })
			ms[:2].allow(t)

			over := make(chan struct{})
			var others sync.WaitGroup
			for range 4 {
				c := ms.client(t, opts...)
				others.Go(func() {
					for !isClosed(over) {
						within, cancel := context.WithTimeout(ctx, time.Second)
						if l, err := k.lock(within, c); err == nil {
							time.Sleep(20 * time.Millisecond)
							l.Unlock(ctx)
						}
						cancel()
					}
				})
			}
			unlocks(t, first)
			began := time.Now()
			unlocks(t, arrival(t, "the lock", barred))
			if took := time.Since(began); took > 8*second { // the others have taken turns meanwhile
				t.Errorf("it had the lock after %v", took)
			}
			close(over)
			others.Wait()
		})
	}
}
