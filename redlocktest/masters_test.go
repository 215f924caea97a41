package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

func lock(t *testing.T, c *redlock.Client, opts ...redlock.MutexOption) *redlock.Lease {
	t.Helper()
	lease, err := c.Mutex("name", opts...).TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func unlock(t *testing.T, lease *redlock.Lease) {
	t.Helper()
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestFresh_masters_grant_at_once(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client)
	for i, value := range masters.Holders("name") {
		if value != lease.Value() {
			t.Errorf("master %d stores %q, want %q", i, value, lease.Value())
		}
	}
	_, err := masters.Client().Mutex("name").TryLock(t.Context())
	wantError(t, err, redlock.ErrTaken)
	unlock(t, lease)
}

// In a bubble an hour takes no time, and everything that is due happens.
func TestIn_a_bubble_a_lease_is_renewed_for_an_hour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := redlocktest.New(t)
		lease := lock(t, client)
		time.Sleep(time.Hour)
		if !lease.Valid() {
			t.Errorf("after an hour: %v", lease.Err())
		}
		unlock(t, lease)
	})
}

func TestKeys_expire_with_a_bubbles_clock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t, redlock.WithTTL(10*time.Second))
		lease := lock(t, client, redlock.NoRenew())
		time.Sleep(10 * time.Second)
		wantError(t, lease.Err(), redlock.ErrExpired)
		unlock(t, lock(t, masters.Client()))
	})
}

func TestIn_a_bubble_the_next_waiter_is_served(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		first := lock(t, client)
		served := make(chan *redlock.Lease)
		go func() {
			lease, err := masters.Client().Mutex("name").Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			served <- lease
		}()
		time.Sleep(5 * time.Minute)
		unlock(t, first)
		unlock(t, <-served)
	})
}

// Neither the epoch nor a jump is taken for a clock that is wrong.
// The subscription of a client ends some time after its last waiter has gone.
func TestIn_a_bubble_nobody_waits_any_more(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := redlocktest.New(t)
		held, err := client.Mutex("orders").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Mutex("orders").Lock(limited); !errors.Is(err, redlock.ErrTaken) {
			t.Errorf("%v, want taken", err)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}

		time.Sleep(time.Minute)

		if _, err := client.Mutex("orders").TryLock(t.Context()); err != nil {
			t.Error(err)
		}
		client.Close()
	})
}

func TestA_mock_at_the_epoch_may_jump(t *testing.T) {
	mock := clock.NewMock()
	client, masters := redlocktest.New(t, redlock.WithClock(mock))
	first := lock(t, client)
	mock.Add(5 * time.Second)
	if !first.Valid() {
		t.Fatalf("after 5 of 30 seconds: %v", first.Err())
	}
	unlock(t, first)

	second := lock(t, client, redlock.NoRenew())
	mock.Add(31 * time.Second)
	wantError(t, second.Err(), redlock.ErrExpired)
	unlock(t, lock(t, masters.Client(redlock.WithClock(mock))))
}

func TestKilling_a_minority_hurts_nobody(t *testing.T) {
	client, masters := redlocktest.New(t)
	masters.Kill(0, 4)
	unlock(t, lock(t, client))
}

func TestWithout_a_quorum_a_lease_ends_before_its_validity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		lease := lock(t, client)
		until := lease.Until()
		masters.LoseQuorum()
		<-lease.Done()
		if !time.Now().Before(until) {
			t.Errorf("it ended at %v, want before %v", time.Now(), until)
		}
		wantError(t, context.Cause(lease.Context()), redlock.ErrExpired)
		_, err := client.Mutex("name").TryLock(t.Context())
		wantError(t, err, redlock.ErrNoQuorum)

		synctest.Wait() // its owner is told before the masters are
		masters.Heal()
		unlock(t, lock(t, client))
	})
}

func TestA_master_that_hung_runs_what_it_was_sent(t *testing.T) {
	client, masters := redlocktest.New(t)
	masters.Hang(1)
	lease := lock(t, client)
	unlock(t, lease)
	masters.Restart(1, redlocktest.Kept)
	if got := masters.Holders("name"); got != [redlocktest.Size]string{} {
		t.Errorf("after the release every master is free, got %q", got)
	}
}

func TestReleases_reach_a_master_that_was_down(t *testing.T) {
	client, masters := redlocktest.New(t)
	lease := lock(t, client)
	masters.Kill(2)
	unlock(t, lease)
	if masters.Holders("name")[2] == "" {
		t.Fatal("the master that is down lost its key")
	}
	masters.Restart(2, redlocktest.Kept)
	if got := masters.Holders("name")[2]; got != "" {
		t.Errorf("the master still stores %q", got)
	}
}

// Three masters forget the lock: their votes must not make a second holder.
func TestMasters_that_forgot_may_not_grant_until_the_leases_have_ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t, redlock.WithTTL(10*time.Second))
		other := masters.Client(redlock.WithTTL(10 * time.Second))
		lease := lock(t, client, redlock.NoRenew())
		for i := range 3 {
			masters.Restart(i, redlocktest.Lost)
		}
		_, err := other.Mutex("name").TryLock(t.Context())
		wantError(t, err, guard.ErrQuarantined)
		if !lease.Valid() {
			t.Fatal("the first lease has ended already")
		}
		time.Sleep(11 * time.Second)
		unlock(t, lock(t, other))
	})
}

func TestA_cut_off_client_is_alone_in_it(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		other := masters.Client()
		masters.Cut(client)
		_, err := client.Mutex("name").TryLock(t.Context())
		wantError(t, err, redlock.ErrNoQuorum)
		unlock(t, lock(t, other))
		masters.Heal()
		unlock(t, lock(t, client))
	})
}

func TestAn_expired_lock_is_found_lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t, redlock.WithKeyPrefix("app:"))
		lease := lock(t, client)
		masters.Expire("name")
		<-lease.Done()
		wantError(t, context.Cause(lease.Context()), redlock.ErrLost)
	})
}

func TestHanging_masters_answer_nobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		masters.Hang(0, 1, 2)
		began := time.Now()
		_, err := client.Mutex("name").TryLock(t.Context())
		wantError(t, err, node.ErrTimeout)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v, want the node timeout", took)
		}
	})
}

// failed is a test that is recorded, not reported.
type failed struct {
	*testing.T
	errors   []string
	cleanups []func()
}

func (f *failed) Helper()                           {}
func (f *failed) Cleanup(c func())                  { f.cleanups = append(f.cleanups, c) }
func (f *failed) Errorf(format string, args ...any) { f.errors = append(f.errors, format) }

// The end of a lease is announced before the masters are told: a test that ends in
// between has left nothing.
func TestA_lease_that_is_being_released_is_not_left(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &failed{T: t}
		client, _ := redlocktest.New(test)
		lease := lock(t, client)
		go func() {
			time.Sleep(100 * time.Millisecond)
			unlock(t, lease)
		}()
		for _, end := range test.cleanups {
			end()
		}
		if len(test.errors) > 0 {
			t.Errorf("reported as left: %q", test.errors)
		}
	})
}

// With AtLeast the masters have the key after the release, until its time is over.
func TestA_lock_that_is_kept_ends_by_itself_and_is_not_left(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &failed{T: t}
		client, masters := redlocktest.New(test)
		unlock(t, lock(t, client, redlock.AtLeast(5*time.Second)))
		if masters.Holders("name") == ([redlocktest.Size]string{}) {
			t.Error("no master keeps the lock")
		}

		time.Sleep(5 * time.Second)

		if holders := masters.Holders("name"); holders != ([redlocktest.Size]string{}) {
			t.Errorf("the masters have %q when the time is over", holders)
		}
		unlock(t, lock(t, client, redlock.AtLeast(5*time.Second)))
		for _, end := range test.cleanups {
			end()
		}
		if len(test.errors) > 0 {
			t.Errorf("reported as left: %q", test.errors)
		}
	})
}

// A process that ended while it was cut off has released nothing. Its lock has ended by its TTL.
func TestA_lock_that_has_expired_is_not_left(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &failed{T: t}
		client, masters := redlocktest.New(test, redlock.WithTTL(10*time.Second))
		lock(t, client)
		masters.Cut(client)
		client.Close()

		time.Sleep(10 * time.Second)

		for _, end := range test.cleanups {
			end()
		}
		if len(test.errors) > 0 {
			t.Errorf("reported as left: %q", test.errors)
		}
	})
}

func TestA_lease_that_is_left_fails_the_test(t *testing.T) {
	for name, leave := range map[string]bool{"left": true, "unlocked": false} {
		t.Run(name, func(t *testing.T) {
			test := &failed{T: t}
			client, masters := redlocktest.New(test)
			masters.Kill(0)
			lease := lock(t, client)
			if !leave {
				unlock(t, lease)
			}
			for _, end := range test.cleanups {
				end()
			}
			if got := len(test.errors) == 1 && strings.Contains(test.errors[0], "still held"); got != leave {
				t.Errorf("errors of the test: %q", test.errors)
			}
		})
	}
}

func TestA_cached_lock_that_nobody_uses_is_not_left(t *testing.T) {
	test := &failed{T: t}
	client, _ := redlocktest.New(test)
	for _, name := range []string{"used", "unlocked"} {
		lease, err := client.Mutex(name, redlock.Cached()).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if name == "unlocked" {
			unlock(t, lease)
		}
	}

	for _, end := range test.cleanups {
		end()
	}

	if len(test.errors) != 1 {
		t.Errorf("errors of the test: %q", test.errors)
	}
}

func TestThe_example_holds(t *testing.T) { testReportStops(t) }

// Masters of which there are none fail the test, in words.
func TestThere_are_five_masters(t *testing.T) {
	_, masters := redlocktest.New(fatal{t})
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "no master 5") {
			t.Errorf("the test ended with %q", said)
		}
	}()
	masters.Kill(redlocktest.Size)
}

// fatal is a test whose end by Fatalf can be recovered from.
type fatal struct{ testing.TB }

func (f fatal) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
