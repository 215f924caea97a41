package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/loopback"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages rows of docs/failures.md on real servers: those that
// cost time and leave things behind. Each test is named for its row.

// Everybody gets the lock, and hardly a vote is split: contenders that ask all
// masters at once each get some of them, again and again.
func TestReal_L2_contenders_do_not_split_the_vote(t *testing.T) {
	t.Parallel()
	const contenders, turns = 8, 10
	ms := startMasters(t, 5)
	var all sync.WaitGroup
	votes := &splits{}
	for range contenders {
		m := ms.client(t, redlock.WithTTL(time.Minute), redlock.WithObserver(votes.observe)).Mutex("orders")
		all.Go(func() {
			limited, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			for range turns {
				if err := redlock.Do(limited, m, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()

	t.Logf("%d acquisitions: %d failed attempts, %d of them split votes", votes.won, votes.failed, votes.split)
	if votes.won != contenders*turns {
		t.Errorf("%d acquisitions, want %d", votes.won, contenders*turns)
	}
	if votes.split > votes.won {
		t.Errorf("%d split votes in %d acquisitions", votes.split, votes.won)
	}
	ms.mustBeFreeSoon(t, "orders")
}

// splits counts attempts, and those that got some votes but not enough.
type splits struct {
	mu                 sync.Mutex
	won, failed, split int
}

func (s *splits) observe(e redlock.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case redlock.LockAcquired:
		s.won++
	case redlock.LockFailed:
		s.failed++
		var failed *redlock.Error
		if errors.As(e.Err, &failed) {
			for _, v := range failed.Votes {
				if v.Vote == quorum.Granted {
					s.split++
					return
				}
			}
		}
	}
}

// One or two of five masters hang while locks are taken and released. That
// costs no goroutine, and when the masters go on, what they had in their
// sockets is cleaned up: their keys would last longer than this test waits.
//
// Not parallel, because it counts goroutines.
func TestReal_L3_L4_hung_masters_pile_nothing_up_and_keep_nothing(t *testing.T) {
	for _, hung := range []int{1, 2} {
		t.Run(strconv.Itoa(hung)+" of 5", func(t *testing.T) {
			ms := startMasters(t, 5)
			c := ms.client(t, redlock.WithTTL(time.Minute))
			names := 0
			pair := func() {
				names++
				if err := lock(t, c.Mutex(fmt.Sprint("pair-", names))).Unlock(ctx); err != nil {
					t.Fatal(err)
				}
			}
			pair()
			start, peak := runtime.NumGoroutine(), 0
			for _, s := range ms[:hung] {
				s.Stop()
			}
			for range 50 { // while the connections are taken for sound
				pair()
				peak = max(peak, runtime.NumGoroutine())
			}
			eventually(t, "the connections are given up", func() bool { return givenUp(t, c, hung) })
			for range 50 {
				pair()
				peak = max(peak, runtime.NumGoroutine())
			}
			for _, s := range ms[:hung] {
				s.Continue()
			}
			eventually(t, "nothing is left", func() bool { return ms.empty(t) })
			t.Logf("%d pairs, %d goroutines before, at most %d while masters hung", names, start, peak)
			if peak > start+5*hung {
				t.Errorf("%d goroutines became %d", start, peak)
			}
			eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= start })
		})
	}
}

// givenUp reports whether the client has no connection to the first masters.
func givenUp(t testing.TB, c *redlock.Client, masters int) bool {
	t.Helper()
	h, err := c.Inspect(ctx, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range h.Nodes[:masters] {
		if !errors.Is(v.Err, node.ErrDown) {
			return false
		}
	}
	return true
}

// empty reports whether no master has any key.
func (ms realMasters) empty(t testing.TB) bool {
	t.Helper()
	for _, s := range ms {
		if do(t, s, "DBSIZE") != int64(0) {
			return false
		}
	}
	return true
}

// A master hangs for longer than the TTL. When it goes on it runs the acquire
// that has been in its socket all the time, with its whole TTL to come.
func TestReal_L3_master_that_hung_for_longer_than_the_TTL(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	c := ms.client(t)
	ms[0].Stop()
	lease := lock(t, c.Mutex("orders", redlock.NoRenew()))
	eventually(t, "the connection is given up", func() bool { return givenUp(t, c, 1) })
	if err := lease.Unlock(ctx); err != nil && !errors.Is(err, redlock.ErrExpired) {
		t.Fatal(err)
	}
	over := time.Now().Add(2 * second)
	eventually(t, "the TTL has passed", func() bool { return time.Now().After(over) })

	ms[0].Continue()

	eventually(t, "the acquire has run", func() bool { return calls(t, ms[0], "set") == 1 })
	ms.mustBeFreeSoon(t, "orders")
	if stats := string(do(t, ms[0], "INFO", "stats").([]byte)); !strings.Contains(stats, "\nexpired_keys:0\r") {
		t.Error("the key was left until it expired")
	}
}

// A master that holds its answer back does not hold up the round. It is let go
// only after Lock and Unlock have returned, so that nobody can have waited.
func TestReal_L4_silent_minority_is_not_waited_for(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	c := dial(t, addrs, redlock.WithNodeTimeout(patience))
	acquire := proxies[0].HoldNext(faultproxy.Replies, faultproxy.Command("SET", "orders"))
	other := proxies[1].HoldNext(faultproxy.Requests, faultproxy.Command("SET", "orders"))

	lease := lock(t, c.Mutex("orders"))
	if err := lease.Extend(ctx, 2*second); err != nil {
		t.Error(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}

	for i, hold := range []*faultproxy.Hold{acquire, other} {
		arrival(t, "the answer that is held", hold.Held())
		if n := proxies[i].Stats().Accepted; n != 1 {
			t.Errorf("the silent connection was given up meanwhile: %d connections", n)
		}
		hold.Release()
	}
	ms.mustBeFreeSoon(t, "orders")
}

// Masters refuse the release, each for its own reason. The reason is told, and
// the release is sent again until it gets through, long before the TTL.
func TestReal_L5_masters_that_refuse_the_release(t *testing.T) {
	t.Parallel()
	nowhere, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nowhere.Close() })
	for _, c := range []struct {
		code         string
		refuse, heal func(*testing.T, *redistest.Server)
	}{
		{"NOREPLICAS",
			func(t *testing.T, s *redistest.Server) { do(t, s, "CONFIG", "SET", "min-replicas-to-write", 1) },
			func(t *testing.T, s *redistest.Server) { do(t, s, "CONFIG", "SET", "min-replicas-to-write", 0) }},
		{"MISCONF",
			func(t *testing.T, s *redistest.Server) {
				do(t, s, "CONFIG", "SET", "save", "3600 1")
				if err := os.MkdirAll(filepath.Join(s.Dir(), "dump.rdb", "in the way"), 0o700); err != nil {
					t.Fatal(err)
				}
				do(t, s, "BGSAVE")
				eventually(t, "saving has failed", func() bool {
					_, err := s.Do("DEL", "nothing")
					return err != nil
				})
			},
			func(t *testing.T, s *redistest.Server) {
				do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
			}},
		{"READONLY",
			func(t *testing.T, s *redistest.Server) { do(t, s, "REPLICAOF", "127.0.0.1", nowhere.Number()) },
			func(t *testing.T, s *redistest.Server) { do(t, s, "REPLICAOF", "NO", "ONE") }},
		{"BUSY",
			func(t *testing.T, s *redistest.Server) {
				background(t, s, "EVAL", "while true do end", 0)
				eventually(t, "the script runs", func() bool {
					_, err := s.Do("DEL", "nothing")
					return err != nil
				})
			},
			func(t *testing.T, s *redistest.Server) { do(t, s, "SCRIPT", "KILL") }},
		{"LOADING",
			func(t *testing.T, s *redistest.Server) {
				populate(t, s, 25_000)
				do(t, s, "CONFIG", "SET", "key-load-delay", 200) // for longer than the test takes
				background(t, s, "DEBUG", "LOADAOF")
				eventually(t, "it loads", func() bool {
					_, err := s.Do("DEL", "nothing")
					return err != nil
				})
			},
			func(t *testing.T, s *redistest.Server) {
				s.Do("CONFIG", "SET", "key-load-delay", 0) // before Redis 7 it is refused, and loading goes on for seconds
			}},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, redistest.Config("lua-time-limit", "1"), redistest.Debug(), redistest.AOF())
			client := ms.client(t, redlock.WithTTL(time.Hour))
			lease := lock(t, client.Mutex("orders"))
			ms.mustHold(t, lease)
			for _, s := range ms {
				c.refuse(t, s)
			}

			err := lease.Unlock(ctx)

			mustBe(t, err, redlock.ErrNoQuorum)
			mustName(t, err, []string{ms[0].Addr(), ms[1].Addr(), ms[2].Addr()})
			if !errors.Is(err, node.ErrNotMaster) { // else the client noticed before it was asked to unlock
				mustBe(t, err, &wire.ServerError{Code: c.code})
				mustName(t, err, []string{c.code})
			}
			for _, s := range ms {
				c.heal(t, s)
			}
			eventually(t, "the masters work again", func() bool {
				for _, s := range ms {
					if _, err := s.Do("GET", "orders"); err != nil {
						return false
					}
				}
				return true
			})
			ms.mustBeFreeSoon(t, "orders")
			if err := lock(t, client.Mutex("orders")).Unlock(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// populate sets keys, each by a command of its own in the append-only file: a server that
// loads it looks at its clients once in a thousand commands.
func populate(t *testing.T, s *redistest.Server, keys int) {
	t.Helper()
	do(t, s, "EVAL", "redis.replicate_commands() for i = 1, tonumber(ARGV[1]) do redis.call('set', 'k:' .. i, '') end", 0, keys)
}

// background runs a command that ends when the test breaks it off.
func background(t *testing.T, s *redistest.Server, command string, args ...any) {
	t.Helper()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn.Do(command, args...)
	}()
	t.Cleanup(func() {
		conn.Close()
		<-over
	})
}

// OOM refuses what needs memory. A release does not.
func TestReal_L5_OOM_refuses_the_acquire_and_not_the_release(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	c := ms.client(t)
	lease := lock(t, c.Mutex("orders"))
	ms.doAll(t, "CONFIG", "SET", "maxmemory", 1)

	_, err := c.Mutex("more").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)
	mustBe(t, err, &wire.ServerError{Code: "OOM"})

	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	ms.mustBeFreeSoon(t, "orders")
}

// The holder's process is killed. Its lock is free after a TTL, and not sooner.
func TestReal_L8_lock_of_a_holder_that_was_killed(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	p := startProcess(t, redistest.URLs(ms), 2*second)
	if got := p.ask("try"); got != "<nil>" {
		t.Fatal(got)
	}
	next := lockLater(t, ms.client(t).Mutex("orders"))
	p.kill()
	ends := ms.firstExpiry(t, "orders")

	lease := next()

	if early := time.Until(ends); early > 0 {
		t.Errorf("taken %v before the first key's end", early)
	}
	ms.mustHold(t, lease)
}

// The caller gives up while the answers are under way.
func TestReal_L9_cancelled_attempt_is_cleaned_up(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	addrs, proxies := ms.behindProxies(t)
	c := dial(t, addrs, redlock.WithTTL(time.Hour), redlock.WithNodeTimeout(patience))
	for _, p := range proxies {
		p.Cut(faultproxy.Replies)
	}
	request, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").Lock(request)
		result <- err
	}()
	eventually(t, "the acquire has run", func() bool { return !ms.free(t, "orders") })

	cancel()

	mustBe(t, arrival(t, "the end of Lock", result), context.Canceled)
	for _, p := range proxies {
		p.Heal()
	}
	ms.mustBeFreeSoon(t, "orders")
}

func TestReal_L9_Unlock_with_a_cancelled_context(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	request, cancel := context.WithCancel(ctx)
	lease, err := ms.client(t, redlock.WithTTL(time.Hour)).Mutex("orders").Lock(request)
	if err != nil {
		t.Fatal(err)
	}
	cancel()

	if err := lease.Unlock(request); err != nil {
		t.Error(err)
	}
	ms.mustBeFreeSoon(t, "orders")
}

// Every script is gone before every step.
func TestReal_L11_SCRIPT_FLUSH(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	c, other := ms.client(t, redlock.WithTTL(time.Hour)), ms.client(t)
	m := c.Mutex("orders")
	for range 5 {
		lease := lock(t, m)
		ms.doAll(t, "SCRIPT", "FLUSH")
		next := lockLater(t, other.Mutex("orders")) // queues
		ms.doAll(t, "SCRIPT", "FLUSH")
		if err := lease.Extend(ctx, time.Hour); err != nil {
			t.Error(err)
		}
		ms.doAll(t, "SCRIPT", "FLUSH")
		if h, err := c.Inspect(ctx, "orders"); err != nil || h.Value != lease.Value() {
			t.Errorf("holder %+v, error %v", h, err)
		}
		ms.doAll(t, "SCRIPT", "FLUSH")
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
		ms.doAll(t, "SCRIPT", "FLUSH")
		if err := next().Unlock(ctx); err != nil {
			t.Error(err)
		}
		ms.mustBeFreeSoon(t, "orders")
	}
}

// A restart forgets the scripts too. With the keys kept, the lease goes on.
func TestReal_L11_restart_between_Lock_and_Unlock(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.AOF())
	c := ms.client(t, redlock.WithTTL(time.Hour))
	lease := lock(t, c.Mutex("orders"))
	ms.mustHold(t, lease)
	for _, s := range ms {
		s.Restart()
	}
	eventually(t, "the masters are connected again", func() bool {
		h, _ := c.Inspect(ctx, "orders")
		return h.Held && !errors.Is(errors.Join(h.Nodes[0].Err, h.Nodes[1].Err, h.Nodes[2].Err), node.ErrDown)
	})

	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}

	ms.mustBeFreeSoon(t, "orders")
}

// Unlock finds nobody. The release is delivered when the masters are back.
func TestReal_L11_Unlock_while_the_masters_are_down(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.AOF())
	lease := lock(t, ms.client(t, redlock.WithTTL(time.Hour)).Mutex("orders"))
	ms.mustHold(t, lease)
	for _, s := range ms {
		s.Kill()
	}

	mustBe(t, lease.Unlock(ctx), redlock.ErrNoQuorum)

	for _, s := range ms {
		s.Restart()
	}
	ms.mustBeFreeSoon(t, "orders")
}

// The connection that wake-ups come by is cut, and the lock is released before
// it is back. The waiter hears of it all the same: its timer is an hour away.
func TestReal_L12_wake_up_that_is_lost_with_its_connection(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	holder := ms.client(t, redlock.WithTTL(time.Hour)).Mutex("orders")
	waiter := ms.client(t, redlock.WithTTL(time.Hour), redlock.WithRetryInterval(time.Hour)).Mutex("orders")
	for range 5 {
		lease := lock(t, holder)
		next := lockLater(t, waiter)
		eventually(t, "the waiter listens", func() bool { return subscriptions(t, ms) == len(ms) })
		ms.doAll(t, "CLIENT", "KILL", "TYPE", "pubsub")

		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}

		if err := next().Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
}

// L4: where an answer may take long, one that has not come yet is no sign that
// the master hangs, and does not keep others from being asked.
func TestReal_L4_distant_masters_are_not_taken_for_hung(t *testing.T) {
	ms := startMasters(t, 3)
	addrs, proxies := ms.behindProxies(t)
	mock := clock.NewMock()
	c := dial(t, addrs, redlock.WithNodeTimeout(second), redlock.WithClock(mock))
	var answers []*faultproxy.Hold
	for _, p := range proxies {
		answers = append(answers, p.HoldNext(faultproxy.Replies, faultproxy.Command("SET", "first")))
	}
	second := proxies[0].HoldNext(faultproxy.Requests, faultproxy.Command("SET", "second"))
	results := make(chan error, 2)
	try := func(name string) {
		lease, err := c.Mutex(name).TryLock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		results <- err
	}

	go try("first")
	for _, answer := range answers {
		arrival(t, "the answer that is held", answer.Held())
	}
	mock.Add(500 * time.Millisecond)
	go try("second")
	arrival(t, "the second question", second.Held())

	second.Release()
	for _, answer := range answers {
		answer.Release()
	}
	for range 2 {
		if err := arrival(t, "a result", results); err != nil {
			t.Error(err)
		}
	}

	// Close waits for the third master's answers, and not for a clock that stands still.
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
}

// L18, L19: callers give up at every moment, also when they are being given the
// lock. With a TTL of an hour nothing but a hand-over helps those who still wait.
func TestReal_L18_L19_who_gives_up_keeps_nobody_waiting(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	patient := ms.client(t, redlock.WithTTL(time.Hour), redlock.WithRetryInterval(time.Hour)).Mutex("orders")
	hasty := ms.client(t, redlock.WithTTL(time.Hour), redlock.WithRetryInterval(time.Hour)).Mutex("orders")
	for round := range 40 {
		held := lock(t, patient)
		limited, giveUp := context.WithCancel(ctx)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if lease, err := hasty.Lock(limited); err == nil {
				lease.Release()
			}
		}()
		eventually(t, "somebody is queued", func() bool { return ms.queued(t, "orders") })
		next := lockLater(t, patient)
		if round%2 == 0 {
			giveUp()
			held.Release()
		} else {
			held.Release()
			giveUp()
		}

		lease := next()

		<-gone
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	ms.mustBeFreeSoon(t, "orders")
	eventually(t, "nobody is queued", func() bool { return !ms.queued(t, "orders") })
}
