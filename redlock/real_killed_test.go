package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file is L8 for every kind: a process with many locks is killed with SIGKILL.
// It is the client of serve.

// victims are the kinds of locks that a process is killed with.
func victims() []aKind {
	again := aKind{name: "reentrant"}
	again.lock = func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		m := c.Mutex("reentrant", redlock.Reentrant())
		lease, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		_, err = m.Lock(lease.Context())
		return lease, err
	}
	again.try = func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("reentrant").TryLock(ctx)
	}
	return append(kinds(), again)
}

// waits waits for what excludes the lock: for what try takes.
func (k aKind) waits(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
	switch k.name {
	case "read":
		return c.RWMutex(k.name).Lock(ctx)
	case "write":
		return c.RWMutex(k.name).RLock(ctx)
	}
	return k.lock(ctx, c)
}

// holdAll locks one of each kind and arrives at a latch.
func holdAll(c *redlock.Client) error {
	for _, k := range victims() {
		if _, err := k.lock(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return c.Latch("latch", 2).Arrive(ctx, "first")
}

// waitForAll begins to wait for one of each kind, and for the latch.
func waitForAll(c *redlock.Client) {
	for _, k := range victims() {
		go k.waits(ctx, c)
	}
	go c.Latch("latch", 2).Wait(ctx)
}

// turnAll locks and unlocks one of each kind without end, and calls done after each.
func turnAll(c *redlock.Client, done func()) {
	for _, k := range victims() {
		go func() {
			for {
				lease, err := k.lock(ctx, c)
				if err != nil {
					fmt.Println(err)
					return
				}
				done()
				lease.Release()
			}
		}()
	}
}

// Whoever wants what a process had that was killed, or waited for, gets it when its
// TTL is over: as the next of that kind, and as what that kind excludes.
func TestReal_L8_every_kind_goes_on_when_its_process_was_killed(t *testing.T) {
	t.Parallel()
	const ttl = 2 * second
	masters := startMasters(t, 5)
	holder := startProcess(t, redistest.URLs(masters), ttl)
	waiter := startProcess(t, redistest.URLs(masters), ttl)
	mustAnswer(t, holder, "hold all", "<nil>")
	mustAnswer(t, waiter, "wait for all", "waiting")
	eventually(t, "the other process is queued for each", func() bool { return masters.queuedForAll(t) })
	// With a longer TTL, so that it is theirs that counts. A place in a queue whose
	// time is over, and that nobody comes past, goes with the queue: so with this TTL.
	c := masters.client(t, redlock.WithTTL(10*second))

	holder.kill()
	waiter.kill()

	masters.mustEndWithin(t, ttl)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	killed := time.Now()
	var all sync.WaitGroup
	for _, k := range victims() {
		for _, take := range []take{k.lock, k.waits} {
			all.Go(func() {
				lease, err := take(within, c)
				if err != nil {
					t.Errorf("%s: %v", k.name, err)
					return
				}
				t.Logf("%s: %v after the end of its holder", k.name, time.Since(killed).Round(time.Millisecond))
				for holds := lease.Holds(); holds > 0; holds-- {
					unlocks(t, lease)
				}
			})
		}
	}
	latch := c.Latch("latch", 2)
	for _, id := range []string{"first", "second"} { // the first has arrived before it was killed
		if n, err := latch.Count(ctx); n != 1 || err != nil {
			t.Errorf("%d have arrived, %v; want 1", n, err)
		}
		if err := latch.Arrive(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if err := latch.Wait(within); err != nil {
		t.Error(err)
	}
	all.Wait()
	masters.mustKeepNothing(t)
}

// Nobody comes after it: what it leaves goes by itself.
func TestReal_L8_nothing_is_left_of_a_process_that_was_killed(t *testing.T) {
	t.Parallel()
	const ttl = 2 * second
	for _, c := range []struct {
		name string
		busy func(*testing.T, realMasters) []*process
	}{
		{"with locks and in queues", func(t *testing.T, masters realMasters) []*process {
			holder := startProcess(t, redistest.URLs(masters), ttl)
			waiter := startProcess(t, redistest.URLs(masters), ttl)
			mustAnswer(t, holder, "hold all", "<nil>")
			mustAnswer(t, waiter, "wait for all", "waiting")
			eventually(t, "it is queued for each", func() bool { return masters.queuedForAll(t) })
			return []*process{waiter, holder}
		}},
		{"while it locks and unlocks", func(t *testing.T, masters realMasters) (both []*process) {
			for range 2 {
				p := startProcess(t, redistest.URLs(masters), ttl)
				mustAnswer(t, p, "turn all", "turned")
				both = append(both, p)
			}
			return both
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)

			for _, p := range c.busy(t, masters) {
				p.kill()
			}

			masters.mustEndWithin(t, ttl)
			masters.mustKeepNothing(t)
			masters.mustEndWithin(t, 7*24*time.Hour)
		})
	}
}

func mustAnswer(t *testing.T, p *process, command, want string) {
	t.Helper()
	if got := p.ask(command); got != want {
		t.Fatalf("%s: the client's process says %q", command, got)
	}
}

// queuedForAll reports whether somebody is queued for every kind, at a majority.
func (ms realMasters) queuedForAll(t *testing.T) bool {
	t.Helper()
	queued := map[string]int{} // by the name of the lock
	for _, s := range ms {
		for _, key := range keysOf(t, s) {
			if _, name, ok := strings.Cut(key, "queue:"); ok {
				queued[name]++
			}
		}
	}
	return !slices.ContainsFunc(victims(), func(k aKind) bool {
		n := queued[k.name]
		for _, more := range multiNames(k.name)[1:] { // a Multi queues for what it lacks
			n = max(n, queued[more])
		}
		return n <= len(ms)/2
	})
}

// mustEndWithin checks that all keys end by themselves within that time: within a
// week what stays for a week, see locksLeft, and never the marker.
func (ms realMasters) mustEndWithin(t *testing.T, d time.Duration) {
	t.Helper()
	for _, s := range ms {
		for _, key := range keysOf(t, s) {
			left := time.Duration(do(t, s, "PTTL", key).(int64)) * time.Millisecond
			most := d
			if staysForAWeek(key) {
				most = 7 * 24 * time.Hour
			}
			if gone := left == -2*time.Millisecond; !gone && (left < 0 || left > most) && !staysForAWeek(key) {
				t.Errorf("%s ends in %v, want at most %v", key, left, most)
			}
		}
	}
}

func keysOf(t testing.TB, s *redistest.Server) []string {
	t.Helper()
	found, err := redis.Strings(s.Do("KEYS", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
