package redlock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file holds what every kind of lock promises, each on five real servers.

// aKind is a kind of lock, as its callers see it.
type aKind struct {
	name string
	lock take // waits
	try  take // is refused while somebody has locked
}

type take func(context.Context, *redlock.Client) (*redlock.Lease, error)

// kinds lists them, each with a lock of another name.
func kinds() []aKind {
	mutex := func(name string, opts ...redlock.MutexOption) aKind {
		return aKind{name,
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Mutex(name, opts...).Lock(ctx)
			},
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Mutex(name, opts...).TryLock(ctx)
			},
		}
	}
	multi := func(name string, opts ...redlock.MultiOption) aKind {
		names := multiNames(name)
		return aKind{name,
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Multi(names, opts...).Lock(ctx)
			},
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Multi(names[:2], opts...).TryLock(ctx)
			},
		}
	}
	writer := func(name string) aKind {
		return aKind{name,
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.RWMutex(name).Lock(ctx)
			},
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.RWMutex(name).TryRLock(ctx)
			},
		}
	}
	reader := func(name string) aKind {
		return aKind{name,
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.RWMutex(name).RLock(ctx)
			},
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.RWMutex(name).TryLock(ctx)
			},
		}
	}
	semaphore := func(name string, permits, n int, opts ...redlock.SemaphoreOption) aKind {
		return aKind{name,
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Semaphore(name, permits, opts...).Acquire(ctx, n)
			},
			func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				return c.Semaphore(name, permits, opts...).TryAcquire(ctx, n)
			},
		}
	}
	election := mutex("election", redlock.Fenced())
	election.lock = func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Election("election").Campaign(ctx, "here\nI am")
	}
	return []aKind{
		mutex("plain"), mutex("fenced", redlock.Fenced()),
		mutex("fair", redlock.Fair(), redlock.Metadata("two words\nand a line")), mutex("fair, fenced", redlock.Fair(), redlock.Fenced()),
		multi("multi"), multi("multi, fenced", redlock.Fenced()),
		writer("write"), reader("read"),
		semaphore("semaphore of 1", 1, 1), semaphore("semaphore of 5", 5, 3), semaphore("semaphore, fenced", 5, 3, redlock.Fenced()),
		election,
	}
}

// multiNames are the locks of the Multi of that name.
func multiNames(name string) []string { return []string{name, name + " too", name + ":three"} }

// holds locks, in time.
func (k aKind) holds(t testing.TB, c *redlock.Client) *redlock.Lease {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := k.lock(within, c)
	if err != nil {
		t.Fatalf("%s: %v", k.name, err)
	}
	return lease
}

// isRefused tries to lock what somebody has.
func (k aKind) isRefused(t *testing.T, c *redlock.Client) {
	t.Helper()
	_, err := k.try(ctx, c)
	mustBe(t, err, redlock.ErrTaken)
}

// unlocks ends a lease that must have lasted until now.
func unlocks(t testing.TB, lease *redlock.Lease) {
	t.Helper()
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// locksLeft returns what the masters store beside what stays for a week: fencing
// counters, the sizes of semaphores, what leaders said, and latches.
func (ms realMasters) locksLeft(t testing.TB) (keys []string) {
	t.Helper()
	for _, s := range ms {
		keys = append(keys, slices.DeleteFunc(keysOf(t, s), staysForAWeek)...)
	}
	return keys
}

// staysForAWeek reports whether a key outlives the leases; the marker always does.
func staysForAWeek(key string) bool {
	what, _, _ := strings.Cut(strings.TrimPrefix(key, "redlock:"), ":")
	return slices.Contains([]string{"marker", "clock", "token", "permits", "leader", "latch", "arrivals", "digest"}, what)
}

// allStore reports whether every master stores a lock.
func (ms realMasters) allStore(t testing.TB) bool {
	t.Helper()
	return !slices.ContainsFunc(ms, func(s *redistest.Server) bool {
		return !slices.ContainsFunc(keysOf(t, s), func(key string) bool { return !staysForAWeek(key) })
	})
}

// mustKeepNothing waits until no lock, queue or entry is left.
func (ms realMasters) mustKeepNothing(t testing.TB) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", ms.locksLeft(t))
		}
	}()
	eventually(t, "nothing is left", func() bool { return len(ms.locksLeft(t)) == 0 })
}

// fault is what can happen to a minority of five masters.
type fault struct {
	name          string
	before, while func(realMasters) // somebody holds the lock
	after         func(realMasters)
}

var faults = []fault{
	{name: "none"},
	{name: "one hung", before: hang(1), after: proceed(1)},
	{name: "two hung", before: hang(2), after: proceed(2)},
	{name: "two hung while it is held", while: hang(2), after: proceed(2)},
	{name: "one killed", before: kill(1), after: revive(1)},
	{name: "two killed", before: kill(2), after: revive(2)},
	{name: "two killed while it is held", while: kill(2), after: revive(2)},
	{name: "one restarted empty", while: restartEmpty(1)},
	{name: "two restarted empty", while: restartEmpty(2)},
}

func hang(n int) func(realMasters)    { return onSome(n, (*redistest.Server).Stop) }
func proceed(n int) func(realMasters) { return onSome(n, (*redistest.Server).Continue) }
func kill(n int) func(realMasters)    { return onSome(n, (*redistest.Server).Kill) }
func revive(n int) func(realMasters)  { return onSome(n, (*redistest.Server).Restart) }
func restartEmpty(n int) func(realMasters) {
	return onSome(n, (*redistest.Server).RestartEmpty)
}

func onSome(n int, do func(*redistest.Server)) func(realMasters) {
	return func(ms realMasters) {
		for _, s := range ms[:n] {
			do(s)
		}
	}
}

// Whatever happens to a minority, each kind excludes, is unlocked, goes to the
// next, and leaves nothing.
func TestReal_every_kind_with_a_minority_of_the_masters_gone(t *testing.T) {
	t.Parallel()
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			happens := func(what func(realMasters)) {
				if what != nil {
					what(masters)
				}
			}
			for _, k := range kinds() {
				t.Run(k.name, func(t *testing.T) {
					long := redlock.WithTTL(30 * time.Second) // a machine that stands still ends no lease
					one, other := masters.client(t, long), masters.client(t, long)
					eventually(t, "all masters are asked", func() bool { return connected(one) == len(masters) })
					happens(fault.before)
					lease := k.holds(t, one)
					for fault.while != nil && !masters.allStore(t) { // so that a majority still does afterwards
						unlocks(t, lease)
						lease = k.holds(t, one)
					}
					happens(fault.while)
					k.isRefused(t, other)
					if !lease.Valid() {
						t.Error("the lease is not valid")
					}
					unlocks(t, lease)
					unlocks(t, k.holds(t, other))
					happens(fault.after)
					masters.mustKeepNothing(t)
				})
			}
		})
	}
}

// L8: whoever waits gets the lock of a holder that has gone without a word.
func TestReal_L8_every_kind_goes_on_when_its_holder_has_gone(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	addrs, proxies := masters.behindProxies(t)
	gone, c := dial(t, addrs), masters.client(t)
	for _, k := range kinds() {
		k.holds(t, gone)
	}
	for _, p := range proxies {
		p.Refuse()
		p.Reset()
	}
	var all sync.WaitGroup
	for _, k := range kinds() {
		all.Go(func() { unlocks(t, k.holds(t, c)) })
	}
	all.Wait()
	masters.mustKeepNothing(t)
}

// L18: who gives up is queued nowhere, and nobody waits for it.
func TestReal_L18_every_kind_forgets_who_stopped_waiting(t *testing.T) {
	masters := startMasters(t, 5)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			holder, other := masters.client(t), masters.client(t)
			lease := k.rival(t, holder)
			within, cancel := context.WithCancel(ctx)
			result := make(chan error, 1)
			go func() {
				_, err := k.lock(within, other)
				result <- err
			}()
			eventually(t, "it is queued", func() bool { return masters.queues(t) > len(masters)/2 })

			cancel()

			mustBe(t, arrival(t, "the end of the wait", result), context.Canceled)
			eventually(t, "nobody is queued", func() bool { return masters.queues(t) == 0 })
			unlocks(t, lease)
			unlocks(t, k.holds(t, holder))
			masters.mustKeepNothing(t)
		})
	}
}

// rival takes what excludes the lock: a writer is excluded by a reader, and the
// other way round.
func (k aKind) rival(t testing.TB, c *redlock.Client) *redlock.Lease {
	t.Helper()
	lease, err := k.try(ctx, c)
	if err != nil {
		t.Fatalf("%s: %v", k.name, err)
	}
	return lease
}

// L16, L17: Close ends those who wait and gives back what is held, of every kind.
func TestReal_L17_Close_leaves_nothing_of_any_kind(t *testing.T) {
	masters := startMasters(t, 5)
	holder, other := masters.client(t, redlock.WithTTL(time.Minute)), masters.client(t, redlock.WithTTL(time.Minute))
	results := make(chan error, len(kinds())+1)
	for _, k := range kinds() {
		k.rival(t, holder)
		go func() {
			_, err := k.lock(ctx, other)
			results <- err
		}()
	}
	go func() { results <- other.Latch("latch", 1).Wait(ctx) }()
	eventually(t, "all are queued", func() bool { return masters.queues(t) > len(kinds())*len(masters)/2 })

	other.Close()

	for range cap(results) {
		mustBe(t, arrival(t, "the end of a wait", results), redlock.ErrClosed)
	}
	eventually(t, "nobody is queued", func() bool { return masters.queues(t) == 0 })
	holder.Close()
	masters.mustKeepNothing(t)
}

// queues returns how many queues there are at the masters, of all locks.
func (ms realMasters) queues(t testing.TB) (n int) {
	t.Helper()
	for _, s := range ms {
		found, err := redis.Strings(s.Do("KEYS", "redlock:*queue:*"))
		if err != nil {
			t.Fatal(err)
		}
		n += len(found)
	}
	return n
}
