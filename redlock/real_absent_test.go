package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// registrations last far longer than these tests wait.
var forHalfAnHour = redlock.WithTTL(30 * time.Minute)

// mustBeDead has a client wait at every master, and die without a word.
func (ms realMasters) mustBeDead(t *testing.T, name string, waits func(context.Context, *redlock.Client) (*redlock.Lease, error)) {
	t.Helper()
	before := ms.channels(t) // who was served may listen for a moment longer
	addrs, proxies := ms.behindProxies(t)
	c := dial(t, addrs, forHalfAnHour)
	go waits(ctx, c)
	eventually(t, "it is queued", func() bool { return ms.queuedFor(t, name, 1) })
	eventually(t, "it listens", func() bool { return ms.listeners(t, before...) == len(ms) })
	for _, p := range proxies {
		p.Refuse()
		p.Reset()
	}
	eventually(t, "the masters know that it has gone", func() bool { return ms.listeners(t, before...) == 0 })
}

// A writer waits beside a reader, and dies. It keeps no other reader out.
func TestReal_L40_a_writer_that_died_keeps_no_reader_out(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	rw := ms.client(t, forHalfAnHour).RWMutex("rw")
	reading := leased(t)(rw.RLock(ctx))
	ms.mustBeDead(t, "rw", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) { return c.RWMutex("rw").Lock(ctx) })

	unlocks(t, leased(t)(ms.client(t, forHalfAnHour).RWMutex("rw").TryRLock(ctx)))
	unlocks(t, leased(t)(ms.client(t, forHalfAnHour).RWMutex("rw").RLock(ctx)))

	unlocks(t, reading)
}

// A writer that is alive still keeps readers out that come after it.
func TestReal_L40_a_writer_that_waits_is_not_passed(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	reading := leased(t)(ms.client(t, forHalfAnHour).RWMutex("rw").RLock(ctx))
	writer, result := ms.client(t, forHalfAnHour), make(chan *redlock.Lease, 1)
	go func() { result <- leased(t)(writer.RWMutex("rw").Lock(ctx)) }()
	eventually(t, "the writer is queued", func() bool { return ms.queuedFor(t, "rw", 1) })
	eventually(t, "it listens", func() bool { return ms.listeners(t) == len(ms) })

	_, err := ms.client(t, forHalfAnHour).RWMutex("rw").TryRLock(ctx)

	mustBe(t, err, redlock.ErrTaken)
	unlocks(t, reading)
	unlocks(t, arrival(t, "the lock", result))
}

// A client waits for more permits than are free, and dies. It keeps none of them from
// others.
func TestReal_L40_a_waiter_for_many_permits_that_died_keeps_none_from_others(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	held := leased(t)(ms.client(t, forHalfAnHour).Semaphore("jobs", 4).TryAcquire(ctx, 2))
	ms.mustBeDead(t, "jobs", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Semaphore("jobs", 4).Acquire(ctx, 3)
	})

	unlocks(t, leased(t)(ms.client(t, forHalfAnHour).Semaphore("jobs", 4).TryAcquire(ctx, 1)))
	unlocks(t, leased(t)(ms.client(t, forHalfAnHour).Semaphore("jobs", 4).Acquire(ctx, 2)))

	unlocks(t, held)
}

// The holder of a fair lock and the client that waits for it die. When the lock has
// expired, TryLock gets it.
func TestReal_L42b_TryLock_of_a_fair_lock_does_not_wait_for_the_dead(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	lock(t, ms.client(t, forHalfAnHour).Mutex("orders", redlock.Fair()))
	ms.mustBeDead(t, "orders", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("orders", redlock.Fair()).Lock(ctx)
	})
	ms.doAll(t, "PEXPIRE", "orders", 1)
	eventually(t, "the lock has expired", func() bool { return len(ms.left(t)) == 0 })

	unlocks(t, leased(t)(ms.client(t, forHalfAnHour).Mutex("orders", redlock.Fair()).TryLock(ctx)))
}

// A writer that was given the lock by two masters, and still waits at the third, goes on as
// a reader. It keeps no reader out there.
func TestReal_L42_a_downgraded_writer_waits_nowhere(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	reading := leased(t)(ms.client(t, forHalfAnHour).RWMutex("rw").RLock(ctx))
	writer, result := ms.client(t, forHalfAnHour).RWMutex("rw"), make(chan *redlock.Lease, 1)
	go func() { result <- leased(t)(writer.Lock(ctx)) }()
	eventually(t, "the writer is queued", func() bool { return ms.queuedFor(t, "rw", 1) })
	do(t, ms[2], "SET", "rw", "somebody", "PX", 1_000_000)
	unlocks(t, reading)
	lease := arrival(t, "the lock", result)
	if got := do(t, ms[2], "EXISTS", "redlock:intent:rw"); got != int64(1) {
		t.Fatal("the writer does not wait at the third master, and this test shows nothing")
	}

	if err := writer.Downgrade(ctx, lease); err != nil {
		t.Fatal(err)
	}

	eventually(t, "it waits nowhere", func() bool { return do(t, ms[2], "EXISTS", "redlock:intent:rw") == int64(0) })
	unlocks(t, lease)
}

// No quorum answers the asks of a fair waiter in time. It keeps its place, since the masters
// can tell it when it is its turn.
func TestReal_L42c_a_fair_waiter_whose_masters_answer_late_keeps_its_place(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	held := lock(t, ms.client(t, forHalfAnHour).Mutex("orders", redlock.Fair()))
	addrs, proxies := ms.behindProxies(t)
	c := dial(t, addrs, redlock.WithTTL(3*time.Second), redlock.WithNodeTimeout(defaults.NodeTimeout))
	result := make(chan *redlock.Lease, 1)
	go func() { result <- leased(t)(c.Mutex("orders", redlock.Fair()).Lock(ctx)) }()
	eventually(t, "it is queued", func() bool { return ms.queuedFor(t, "orders", 1) })
	eventually(t, "it listens", func() bool { return ms.listeners(t) == len(ms) })
	for _, p := range proxies {
		p.Delay(faultproxy.Replies, 200*time.Millisecond)
	}
	asks := calls(t, ms[0], "zadd")
	var left []int // before it listened it may have left: then nobody could have told it
	for _, m := range ms {
		left = append(left, calls(t, m, "zrem"))
	}

	eventually(t, "it has asked four times more", func() bool { return calls(t, ms[0], "zadd") >= asks+4 })

	for i, s := range ms {
		if n := calls(t, s, "zrem") - left[i]; n > 0 {
			t.Errorf("it has left the queue of master %d, %d times", i, n)
		}
	}
	for _, p := range proxies {
		p.Delay(faultproxy.Replies, 0)
	}
	unlocks(t, held)
	arrival(t, "the lock", result)
}

// leased wants a lease.
func leased(t *testing.T) func(*redlock.Lease, error) *redlock.Lease {
	return func(l *redlock.Lease, err error) *redlock.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}
