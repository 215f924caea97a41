package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A lock that callers of two clients hand to each other is never free for callers that do not
// queue, but they get it now and then.
func TestReal_L66_who_does_not_queue_gets_a_lock_that_is_handed_over(t *testing.T) {
	t.Parallel()
	for who, stranger := range map[string]func(masters realMasters, t *testing.T) func(turn int) (unlock func(), ok bool){
		"another library": setNX, "TryLock": triesLock, "Polling": polls,
	} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 3)
			handOver(t, masters)
			gets(t, stranger(masters, t))
		})
	}
}

func TestReal_L66_who_does_not_queue_gets_the_lock_while_a_minority_of_the_masters_fails(t *testing.T) {
	t.Parallel()
	whileMinorityFails(t, func(t *testing.T, masters realMasters, fail func() realMasters, mend func()) {
		try := triesLock(masters, t)
		handOver(t, masters)
		fail()
		gets(t, try)
		mend()
	})
}

// Where nobody may pass those who queue, a pause would only cost time.
func TestReal_L66_a_fair_lock_is_not_left_to_others(t *testing.T) {
	t.Parallel()
	for left, opts := range map[string][]redlock.MutexOption{"1": nil, "0": {redlock.Fair()}} {
		t.Run(fmt.Sprint(len(opts)), func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 3)
			ofClient := func(id string) *redlock.Mutex {
				return masters.client(t, redlock.WithTTL(10*second), redlock.WithClientID(id)).Mutex("lock", opts...)
			}
			first := lock(t, ofClient("first"))
			held := lockLater(t, ofClient("second"))
			masters.awaitQueued(t, "lock", "second")
			first.Release()
			lease := held()
			next := lockLater(t, ofClient("third"))
			masters.awaitQueued(t, "lock", "third")
			time.Sleep(1500 * time.Millisecond) // by then 10 ms are owed

			unlocks(t, lease)
			next().Release()
			for _, s := range masters {
				if got := fmt.Sprint(do(t, s, "SCRIPT", "EXISTS", wire.ScriptYield.SHA)); got != "["+left+"]" {
					t.Errorf("%s was asked to leave the lock to others: %s, want %s", s.Addr(), got, left)
				}
			}
		})
	}
}

// Who has left a lock to callers that do not queue comes again meanwhile. It knows nothing of those
// who wait: it has not had to wait itself for seconds.
func TestReal_L74_who_leaves_a_lock_to_others_waits_behind_those_who_wait(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	ofClient := func(id string) *redlock.Mutex {
		return masters.client(t, redlock.WithTTL(10*second), redlock.WithClientID(id)).Mutex("lock")
	}
	passing, err := ofClient("first").TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := ofClient("second")
	held := lockLater(t, m)
	masters.awaitQueued(t, "lock", "second")
	passing.Release()
	lease := held()
	next := lockLater(t, ofClient("third"))
	masters.awaitQueued(t, "lock", "third")
	time.Sleep(2500 * time.Millisecond)

	unlocks(t, lease)
	again := lockLater(t, m)
	next().Release()
	again().Release()
}

// The masters' clocks are set back while the lock is left to callers that do not queue. There is no
// client by whose departure the pause could end before its time.
func TestReal_L68_a_clock_that_is_set_back_does_not_lengthen_a_pause(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3, redistest.Faketime())
	ofClient := func(id string) *redlock.Mutex {
		return masters.client(t, redlock.WithTTL(10*second), redlock.WithClientID(id)).Mutex("lock")
	}
	passing, err := ofClient("first").TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held := lockLater(t, ofClient("second"))
	masters.awaitQueued(t, "lock", "second")
	passing.Release()
	lease := held()
	next := lockLater(t, ofClient("third"))
	masters.awaitQueued(t, "lock", "third")
	time.Sleep(250 * time.Millisecond)

	lease.Release()
	for _, s := range masters {
		eventually(t, "the lock is left to others", func() bool { return do(t, s, "HEXISTS", "redlock:wait:lock", "/") == int64(1) })
		s.StepClock(-time.Hour)
	}
	since := time.Now()
	next().Release()
	if took := time.Since(since); took > 8*second {
		t.Errorf("the next caller waited for %v", took)
	}
}

// handOver has callers of two clients hand the lock to each other until the test ends. Nobody
// but them waits for it for long.
func handOver(t *testing.T, masters realMasters) {
	t.Helper()
	limited, cancel := context.WithCancel(ctx)
	var callers sync.WaitGroup
	t.Cleanup(func() { cancel(); callers.Wait() })
	for range 2 {
		m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock")
		for range 2 {
			callers.Go(func() {
				for {
					since := time.Now()
					lease, err := m.Lock(limited)
					if err != nil {
						return
					}
					if took := time.Since(since); took > 5*second {
						t.Errorf("a caller that queues waited for %v", took)
					}
					time.Sleep(2 * time.Millisecond)
					lease.Release()
				}
			})
		}
	}
}

// gets wants a caller to have some turns.
func gets(t *testing.T, try func(turn int) (unlock func(), ok bool)) {
	t.Helper()
	turns := 0
	eventually(t, "it has had five turns", func() bool {
		if unlock, ok := try(turns); ok {
			turns++
			time.Sleep(2 * time.Millisecond)
			unlock()
		}
		return turns == 5
	})
}

func triesLock(masters realMasters, t *testing.T) func(int) (func(), bool) {
	m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock")
	return func(int) (func(), bool) {
		lease, err := m.TryLock(ctx)
		if err != nil {
			return nil, false
		}
		return lease.Release, true
	}
}

func polls(masters realMasters, t *testing.T) func(int) (func(), bool) {
	m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Polling(5*time.Millisecond, 20*time.Millisecond))
	return func(int) (func(), bool) {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		lease, err := m.Lock(limited)
		if err != nil {
			return nil, false
		}
		return lease.Release, true
	}
}

// setNX is a client of another library.
func setNX(masters realMasters, t *testing.T) func(int) (func(), bool) {
	const release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end`
	return func(turn int) (func(), bool) {
		value, granted := fmt.Sprint("host:", turn), 0
		unlock := func() {
			for _, s := range masters {
				do(t, s, "EVAL", release, "1", "lock", value)
			}
		}
		for _, s := range masters {
			if do(t, s, "SET", "lock", value, "NX", "PX", "10000") == "OK" {
				granted++
			}
		}
		if granted < 2 {
			unlock()
			return nil, false
		}
		return unlock, true
	}
}

// Who was told at the start of a pause may have left, or may have found the lock taken again. So
// those who wait are told when the lock gets free within the pause, or when the first of them leaves.
func TestReal_L66_those_who_wait_are_told_within_a_pause(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	who := func(n string) string { return "c/abcdefghijklmnop/" + n }
	q, both := wire.QueueOf("", "a"), wire.ManyOf("", []string{"a", "b"})
	for what, frees := range map[string][]*wire.Command{
		"a Multi that waits for another lock gives it back": {
			both.Take(wire.OpAcquire, who("m:1"), minute, 0, 0, wire.WaitForFirst),
			wire.Ask("a", q, who("x:2"), 1, minute),
			both.Take(wire.OpAsk, who("m:2"), minute, 3, 0, 2),
		},
		"the first leaves a lock that is kept": {
			wire.Acquire("a", "d/abcdefghijklmnop/P1:0", minute),
			wire.Keep("a", q, "d/abcdefghijklmnop/P1:0", minute),
			wire.Release("a", q, "d/abcdefghijklmnop/P1:0", minute).Keeping(),
			wire.Release("a", q, who("x:1"), minute),
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startMasters(t, 1)[0]
			subscribes(t, s, "c")
			holder := "d/abcdefghijklmnop/1:0"
			runAt(t, s, wire.Acquire("a", holder, minute))
			runAt(t, s, wire.Ask("a", q, who("x:1"), 1, minute))
			runAt(t, s, wire.Ask("a", q, who("y:1"), 2, minute))
			runAt(t, s, wire.Yield("a", q, holder, minute))
			runAt(t, s, wire.Release("a", q, holder, minute))
			before := calls(t, s, "publish")

			for _, cmd := range frees {
				runAt(t, s, cmd)
			}

			if calls(t, s, "publish") == before {
				t.Error("nobody was told")
			}
		})
	}
}
