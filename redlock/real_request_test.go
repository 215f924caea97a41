package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// long is a TTL whose renewals no test waits for.
const long = 600 * second

func TestReal_a_request_reaches_the_holder_of_every_kind_by_a_message(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	holder, other := masters.client(t, redlock.WithTTL(long)), masters.client(t, redlock.WithClientID("ann"))
	for _, k := range kinds() {
		lease := k.holds(t, holder)
		requests := lease.Requested()

		asks(t, other, k.name, "please, "+k.name)

		want := redlock.Request{Client: "ann", Reason: "please, " + k.name}
		if got := arrival(t, k.name, requests); got != want {
			t.Errorf("%s: heard %+v", k.name, got)
		}
		unlocks(t, lease)
		mustBe(t, other.RequestRelease(ctx, k.name, ""), redlock.ErrNotHeld)
	}
}

func TestReal_a_request_reaches_all_who_share_a_lock(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	other := masters.client(t)
	var readers, workers []<-chan redlock.Request
	for range 3 {
		c := masters.client(t, redlock.WithTTL(long))
		reader, err := c.RWMutex("config").RLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		worker, err := c.Semaphore("gpu", 7).Acquire(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		readers, workers = append(readers, reader.Requested()), append(workers, worker.Requested())
	}

	asks(t, other, "config", "readers")
	asks(t, other, "gpu", "workers")

	for i := range readers {
		if r, w := arrival(t, "reader", readers[i]), arrival(t, "worker", workers[i]); r.Reason != "readers" || w.Reason != "workers" {
			t.Errorf("heard %+v and %+v", r, w)
		}
	}
}

func TestReal_a_request_reaches_a_holder_by_every_name_of_a_Multi(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	holder, other := masters.client(t, redlock.WithTTL(long)), masters.client(t)
	lease, err := holder.Multi([]string{"account:7", "account:9"}).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	requests := lease.Requested()
	for _, name := range []string{"account:7", "account:9"} {
		asks(t, other, name, name)
		for arrival(t, name, requests).Reason != name { // another ask for the name before it
		}
	}
}

// A client whose clock is ahead has asked before. Or the clock of the client that asks now is behind.
func TestReal_L70_a_request_is_made_again_above_one_with_a_higher_number(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	lease := lock(t, masters.client(t, redlock.WithTTL(long)).Mutex("orders"))
	requests := lease.Requested()
	for _, s := range masters {
		number := time.Now().Add(time.Hour).UnixMicro() // another one at each
		do(t, s, "SET", "redlock:asked:"+lease.Value(), fmt.Sprint(number, " bob first"), "EX", 600)
		do(t, s, "PUBLISH", "redlock:wait:"+lease.Value(), "request")
	}
	for arrival(t, "the request of bob", requests); len(requests) > 0; {
		<-requests
	}

	asks(t, masters.client(t, redlock.WithClientID("ann")), "orders", "please")

	for got := arrival(t, "the request of ann", requests); got.Client != "ann"; {
		got = arrival(t, "the request of ann", requests)
	}
}

// A process that took its lock up again is the holder that it was.
func TestReal_a_request_reaches_who_has_adopted_the_lock(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	value := lock(t, masters.client(t, redlock.WithTTL(long)).Mutex("orders")).Value()
	lease, err := masters.client(t, redlock.WithTTL(long)).Mutex("orders").Adopt(ctx, value)
	if err != nil {
		t.Fatal(err)
	}
	requests := lease.Requested()
	asks(t, masters.client(t), "orders", "please")
	arrival(t, "the request", requests)
}

// failures are the ways in which a master fails under a request.
var failures = map[string]struct{ fails, recovers func(*redistest.Server) }{
	"hung":      {(*redistest.Server).Stop, (*redistest.Server).Continue},
	"killed":    {(*redistest.Server).Kill, (*redistest.Server).Restart},
	"restarted": {(*redistest.Server).RestartEmpty, func(*redistest.Server) {}},
}

// whileMinorityFails runs a test with none, one and two of five masters, the first ones, in each of
// these ways. fail returns the others.
func whileMinorityFails(t *testing.T, test func(t *testing.T, masters realMasters, fail func() realMasters, mend func()), opts ...redistest.Option) {
	for how, failure := range failures {
		for many := range 3 {
			t.Run(fmt.Sprint(many, how), func(t *testing.T) {
				t.Parallel()
				masters := startMasters(t, 5, opts...)
				each := func(do func(*redistest.Server)) realMasters {
					for _, s := range masters[:many] {
						do(s)
					}
					return masters[many:]
				}
				test(t, masters, func() realMasters { return each(failure.fails) }, func() { each(failure.recovers) })
			})
		}
	}
}

func TestReal_a_request_reaches_the_holder_while_a_minority_of_the_masters_fails_and_leaves_no_key(t *testing.T) {
	t.Parallel()
	whileMinorityFails(t, func(t *testing.T, masters realMasters, fail func() realMasters, mend func()) {
		holder, other := masters.client(t, redlock.WithTTL(10*second)), masters.client(t)
		lease := lock(t, holder.Mutex("orders"))
		requests := lease.Requested()
		fail()

		asks(t, other, "orders", "please")

		arrival(t, "the request", requests)
		if err := lease.Err(); err != nil {
			t.Error(err)
		}
		mend()
		unlocks(t, lease)
		masters.mustKeepNothing(t)
	})
}

func TestReal_a_request_without_a_quorum_of_masters_fails(t *testing.T) {
	t.Parallel()
	for how, failure := range failures {
		if how == "restarted" {
			continue // they answer
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			c := masters.client(t, redlock.WithTTL(long))
			lock(t, c.Mutex("orders"))
			for _, s := range masters[:3] {
				failure.fails(s)
			}
			mustBe(t, c.RequestRelease(ctx, "orders", ""), redlock.ErrNoQuorum)
			for _, s := range masters[:3] {
				failure.recovers(s)
			}
		})
	}
}

// A holder that may not subscribe learns of it with its next renewal.
func TestReal_a_request_reaches_a_holder_without_the_SUBSCRIBE_permission(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3, redistest.User("ann", "pw", append(permissions, "-subscribe")...))
	masters.markAsNew(t, "app:")
	c := masters.client(t, redlock.WithKeyPrefix("app:"), redlock.WithTTL(10*second))
	lease := lock(t, c.Mutex("orders"))
	requests := lease.Requested()

	asks(t, c, "orders", "please")

	arrival(t, "the request", requests)
	if err := lease.Err(); err != nil {
		t.Error(err)
	}
}

// What one master of three has left over is no holder, unless another master cannot say.
func TestReal_a_request_is_for_holders_that_may_have_a_majority(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	c := masters.client(t)
	do(t, masters[0], "SET", "orders", "a value of another library", "PX", 600_000)

	mustBe(t, c.RequestRelease(ctx, "orders", "please"), redlock.ErrNotHeld)

	masters[1].Kill()
	if err := c.RequestRelease(ctx, "orders", "please"); err != nil {
		t.Errorf("one of two masters that answer has it: %v", err)
	}
}
