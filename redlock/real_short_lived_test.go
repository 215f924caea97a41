package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file has clients that live, or are used, for shorter than any guard: what one writes must do for the next.

// L60: clients that cannot read the run of new masters have tried to lock. Then an operator declares the
// masters new, which forgets what was written of their clocks beside the markers of before.
func TestReal_L60_the_next_client_locks_when_masters_are_declared_new_after_an_attempt(t *testing.T) { // alone: clocks that are read slowly are not written
	ms := startMasters(t, 3, redistest.User("ann", "pw", "~*", "&*", "+@all", "-info"))
	addrs, _ := urlsBehind(t, ms)
	opts := []redlock.Option{redlock.WithTTL(20 * second), redlock.WithRestartGuard(20 * second)}
	early := dial(t, addrs, opts...)
	if _, err := early.Mutex("orders").TryLock(ctx); err == nil {
		t.Fatal("masters without a marker vote")
	}
	eventually(t, "it is written where the clocks are", func() bool {
		for _, s := range ms {
			if told, _ := redis.String(s.Do("GET", "redlock:clock")); told == "" {
				return false
			}
		}
		return true
	})
	early.Close()

	declareNew(t, redistest.URLs(ms))

	if _, err := dial(t, addrs, opts...).Mutex("orders").TryLock(ctx); err != nil {
		t.Error(err)
	}
}

// L59: a client locks by two masters. A third is connected just before the client ends, and is all that is
// left to compare the clock of the first with when the second restarts.
func TestReal_L59_a_client_that_ends_has_listed_all_clocks(t *testing.T) { // alone: clocks that are read slowly are not written
	ms := startMasters(t, 3)
	declareNew(t, redistest.URLs(ms))
	addrs, proxies := ms.behindProxies(t)
	opts := []redlock.Option{redlock.WithTTL(20 * second), redlock.WithRestartGuard(20 * second)}
	proxies[2].Refuse()
	first := dial(t, addrs, opts...)
	lease := lock(t, first.Mutex("orders"))
	proxies[2].Heal()
	eventually(t, "the third master votes, and its clock is known well", func() bool {
		third := first.Nodes()[2]
		return third.RunID != "" && third.Latency > 0 && third.Latency < 20*time.Millisecond
	})
	noError(t, lease.Unlock(ctx))
	noError(t, first.Close())

	run, err := redis.String(ms[2].Do("INFO", "server"))
	noError(t, err)
	_, run, _ = strings.Cut(run, "run_id:")
	for _, s := range ms[:2] {
		told, _ := redis.String(s.Do("GET", "redlock:clock"))
		if !strings.Contains(told, run[:40]) {
			t.Errorf("%s is not compared with the third master: %q", s.Addr(), told)
		}
	}
	ms[1].RestartEmpty()
	if _, err := dial(t, addrs, opts...).Mutex("orders").TryLock(ctx); err != nil {
		t.Error(err)
	}
}

// L86: of what is written of B's clock, A is down and C has lost its memory. A client that is used every
// few seconds, and rests in between, locks when it has been there for a guard.
func TestReal_L86_a_client_that_rests_again_and_again_locks_when_it_has_been_there_for_a_guard(t *testing.T) {
	t.Parallel()
	const guard = 5 * second
	ms := startMasters(t, 3)
	declareNew(t, redistest.URLs(ms))
	opts := []redlock.Option{redlock.WithTTL(guard), redlock.WithRestartGuard(guard)}
	before := ms.client(t, opts...)
	noError(t, lock(t, before.Mutex("orders")).Unlock(ctx))
	heartbeat(t, before)
	noError(t, before.Close())
	ms[0].Kill()
	ms[2].RestartEmpty()

	c := ms.client(t, append(opts, seam.Option(seam.Seams{Rest: 100 * time.Millisecond}).(redlock.Option))...)
	began := time.Now()
	for {
		time.Sleep(4 * second) // longer than it may be without a look
		_, err := c.Mutex("orders").TryLock(ctx)
		if err == nil {
			return
		}
		if time.Since(began) > 3*guard {
			t.Fatal(err)
		}
	}
}
