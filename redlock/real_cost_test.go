package redlock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file counts at the servers what each kind of lock costs while nobody else
// wants it. A round trip is one command at each of them.

// manyNames returns so many names.
func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "name " + strconv.Itoa(i)
	}
	return names
}

func TestReal_round_trips_of_every_kind(t *testing.T) {
	masters := startMasters(t, 5)
	asked := masters.tap(t)
	for _, k := range append(kinds(),
		aKind{"multi of 1", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.Multi(manyNames(1)).Lock(ctx)
		}, nil},
		aKind{"multi of 100", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.Multi(manyNames(100)).Lock(ctx)
		}, nil},
		aKind{"multi of 100, fenced", func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
			return c.Multi(manyNames(100), redlock.Fenced()).Lock(ctx)
		}, nil},
	) {
		t.Run(k.name, func(t *testing.T) {
			c := masters.client(t, redlock.WithTTL(time.Hour)) // no renewal
			unlocks(t, k.holds(t, c))                          // connected, and the scripts are known
			masters.mustKeepNothing(t)
			asked.since(t)

			lease := k.holds(t, c)
			unlocks(t, lease)
			masters.mustKeepNothing(t)

			for i, n := range asked.since(t) {
				if n != 2 {
					t.Errorf("master %d: %d commands to lock and unlock, want 2", i, n)
				}
			}
		})
	}
}

// tapped is what each master was asked by clients, not by scripts, about locks.
type tapped struct {
	masters realMasters
	mu      sync.Mutex
	asked   []int
	ends    int
}

// tap listens to all masters, until the end of the test.
func (ms realMasters) tap(t testing.TB) *tapped {
	t.Helper()
	w := &tapped{masters: ms, asked: make([]int, len(ms))}
	for i, s := range ms {
		conn, err := s.Dial(redis.DialReadTimeout(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Do("MONITOR"); err != nil {
			t.Fatal(err)
		}
		over := make(chan bool)
		t.Cleanup(func() { conn.Close(); <-over })
		go func() {
			defer close(over)
			for {
				line, err := redis.String(conn.Receive())
				if err != nil {
					return
				}
				w.note(i, line)
			}
		}()
	}
	return w
}

func (w *tapped) note(i int, line string) {
	counts := func(command string) bool { return strings.Contains(line, `] "`+command+`" `) }
	if strings.Contains(line, " lua] ") || strings.Contains(line, wire.ScriptMarker.SHA) || !slices.ContainsFunc([]string{"EVALSHA", "EVAL", "SET", "SMEMBERS", "ECHO"}, counts) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(line, theEnd) {
		w.ends++
		return
	}
	w.asked[i]++
}

// since returns what each master was asked since the call before.
func (w *tapped) since(t testing.TB) []int {
	t.Helper()
	w.mu.Lock()
	w.ends = 0
	w.mu.Unlock()
	for _, s := range w.masters {
		do(t, s, "ECHO", theEnd)
	}
	eventually(t, "all was heard", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.ends == len(w.masters)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = make([]int, len(w.masters))
	return asked
}

// theEnd stands behind what was asked before.
const theEnd = "that is all"

// The counters differ, and so do the clocks: a second round trip.
func TestReal_round_trips_of_a_fenced_lock_whose_counters_differ(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(time.Hour))
	m := c.Mutex("fenced", redlock.Fenced())
	unlocks(t, lock(t, m))
	masters.mustKeepNothing(t)
	far := time.Now().Add(time.Hour).UnixMicro()
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:fenced", far+int64(i))
	}
	asked := masters.tap(t)

	unlocks(t, lock(t, m))

	masters.mustKeepNothing(t)
	sum := 0
	for _, n := range asked.since(t) {
		sum += n
	}
	// Three to lock, three to unlock, and one or two raises: of the masters that
	// were among the first two and below.
	if sum < 7 || sum > 8 {
		t.Errorf("%d commands at three masters", sum)
	}
}

// The same of a semaphore. Others may count while the counters are raised, so that
// never fails.
func TestReal_round_trips_of_a_fenced_semaphore_whose_counters_differ(t *testing.T) {
	masters := startMasters(t, 3)
	sem := masters.client(t, redlock.WithTTL(time.Hour)).Semaphore("sem", 3, redlock.Fenced())
	take := func() {
		t.Helper()
		lease, err := sem.TryAcquire(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		unlocks(t, lease)
		masters.mustKeepNothing(t)
	}
	take()
	far := time.Now().Add(time.Hour).UnixMicro()
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:sem", far+int64(i))
	}
	asked := masters.tap(t)

	take()

	sum := 0
	for _, n := range asked.since(t) {
		sum += n
	}
	if sum < 7 || sum > 8 { // as of a fenced lock
		t.Errorf("%d commands at three masters", sum)
	}
}

// Two clients begin at different slots, and a permit that was taken behind the back
// of a minority costs the second round trip.
func TestReal_round_trips_of_a_semaphore_after_a_collision(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(time.Hour))
	sem := c.Semaphore("sem", 2)
	first, err := sem.TryAcquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, first)
	masters.mustKeepNothing(t)
	slot := taken(t, masters[0], sem)
	for _, s := range masters[:2] {
		takeSlot(t, s, "sem", slot)
	}
	asked := masters.tap(t)

	lease, err := sem.TryAcquire(ctx, 1)

	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, lease)
	sum := 0
	for i, n := range asked.since(t) {
		if sum += n; n > 3 {
			t.Errorf("master %d: %d commands to lock and unlock", i, n)
		}
	}
	if sum > 9 {
		t.Errorf("%d commands at three masters", sum)
	}
}

// taken returns which slot the client takes first.
func taken(t *testing.T, s *redistest.Server, sem *redlock.Semaphore) string {
	t.Helper()
	lease, err := sem.TryAcquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var slot string
	eventually(t, "the master has it", func() bool {
		slots := do(t, s, "ZRANGE", "redlock:slots:sem", 0, -1).([]any)
		if len(slots) == 1 {
			slot = string(slots[0].([]byte))
		}
		return slot != ""
	})
	unlocks(t, lease)
	eventually(t, "it is free", func() bool { return do(t, s, "EXISTS", "redlock:slots:sem") == int64(0) })
	return slot
}

// takeSlot gives a slot to somebody else.
func takeSlot(t *testing.T, s *redistest.Server, name, slot string) {
	t.Helper()
	eventually(t, "it is free", func() bool { return do(t, s, "EXISTS", "redlock:slots:"+name) == int64(0) })
	do(t, s, "ZADD", "redlock:slots:"+name, time.Now().Add(time.Hour).UnixMilli(), slot)
	do(t, s, "HSET", "redlock:owners:"+name, slot, "other/nonce/1")
	do(t, s, "HSET", "redlock:held:"+name, "other/nonce/1", slot+" other/nonce/1:0")
}

func TestReal_round_trips_of_a_latch(t *testing.T) {
	masters := startMasters(t, 3)
	l := masters.client(t).Latch("jobs", 10)
	if err := l.Arrive(ctx, "first"); err != nil { // the masters learn that the latch is new
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return masters.arrived(t, "first") })
	asked := masters.tap(t)

	if err := l.Arrive(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return masters.arrived(t, "second") })
	for i, n := range asked.since(t) {
		if n != 1 {
			t.Errorf("master %d: %d commands to arrive, want 1", i, n)
		}
	}
	n, err := l.Count(ctx)
	if n != 2 || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
	sum := 0
	for _, n := range asked.since(t) {
		sum += n
	}
	// Three reads; and who was not among the first two to answer is told what they know.
	if sum < 2 || sum > 4 {
		t.Errorf("%d commands to count at three masters", sum)
	}
}

// Sets that differ cost two more round trips: they are read, and the union is written back
// before anybody is told. The count after it costs one again.
func TestReal_round_trips_of_a_latch_whose_masters_differ(t *testing.T) {
	masters := startMasters(t, 3)
	l := masters.client(t).Latch("jobs", 10)
	if err := l.Arrive(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all have it", func() bool { return masters.arrived(t, "first") })
	for i, s := range masters {
		do(t, s, "SADD", "redlock:latch::jobs", strconv.Itoa(i))
	}
	asked := masters.tap(t)

	n, err := l.Count(ctx)

	if n < 3 || n > 4 || err != nil { // those that the two or three who answered know
		t.Errorf("%d have arrived, %v", n, err)
	}
	sum := 0
	eventually(t, "the write has reached all masters", func() bool {
		for _, n := range asked.since(t) {
			sum += n
		}
		return sum >= 9
	})
	if sum > 10 { // a master that answered late is asked once more
		t.Errorf("%d commands at three masters, want a look, a read and a write at each", sum)
	}
	masters.doAll(t, "SADD", "redlock:latch::jobs", "0", "1", "2") // all know the same
	asked.since(t)
	if n, err := l.Count(ctx); n != 4 || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
	sum = 0
	for _, n := range asked.since(t) {
		sum += n
	}
	if sum < 2 || sum > 4 {
		t.Errorf("%d commands to count once more at three masters", sum)
	}
}

// arrived reports whether every master knows of an arrival, and that it knows all.
func (ms realMasters) arrived(t testing.TB, id string) bool {
	t.Helper()
	for _, s := range ms {
		if do(t, s, "SISMEMBER", "redlock:latch::jobs", id) != int64(1) || do(t, s, "EXISTS", "redlock:arrivals::jobs") != int64(1) {
			return false
		}
	}
	return true
}
