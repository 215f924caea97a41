package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_rw_one_writer_or_many_readers(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	var readers, writers atomic.Int32
	var most atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		m := masters.client(t).RWMutex("rw")
		for range 3 {
			all.Go(func() {
				for range 15 {
					lease, err := m.RLock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if n := readers.Add(1); n > most.Load() {
						most.Store(n)
					}
					if writers.Load() > 0 {
						t.Error("a reader beside a writer")
					}
					time.Sleep(time.Millisecond)
					readers.Add(-1)
					if err := lease.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			for range 15 {
				lease, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if writers.Add(1) != 1 || readers.Load() > 0 {
					t.Error("a writer is not alone")
				}
				writers.Add(-1)
				if err := lease.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if most.Load() < 2 {
		t.Error("readers never read together")
	}
	eventually(t, "nobody is queued", func() bool { return slices.Max(masters.places(t, "rw")) == 0 })
}

func TestReal_rw_downgrade_lets_readers_in(t *testing.T) {
	masters := startMasters(t, 5)
	m, other := masters.client(t).RWMutex("rw"), masters.client(t).RWMutex("rw")
	w, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.TryRLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Fatalf("reader beside a writer: %v", err)
	}
	if err := m.Downgrade(ctx, w); err != nil {
		t.Fatal(err)
	}
	r, err := other.TryRLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("writer beside readers: %v", err)
	}
	if !w.Shared() || !w.Valid() {
		t.Error("the lease is no reader's")
	}
	for _, l := range []*redlock.Lease{w, r} {
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := other.TryLock(ctx); err != nil {
		t.Error(err)
	}
}

// A Downgrade that too few masters have heard of is called again until it succeeds.
func TestReal_rw_downgrade_without_a_quorum_is_called_again(t *testing.T) {
	masters := startMasters(t, 3)
	addrs, links := masters.behindProxies(t)
	m := dial(t, addrs).RWMutex("rw", redlock.NoRenew())
	w, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links[:2] {
		l.Refuse()
		l.Reset()
	}

	err = m.Downgrade(ctx, w)

	var failed *redlock.Error
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &failed) || failed.Op != "downgrade" {
		t.Errorf("with two of three masters away: %v", err)
	}
	for _, l := range links[:2] {
		l.Heal()
	}
	eventually(t, "enough masters know that it reads", func() bool { return m.Downgrade(ctx, w) == nil })
	r, err := masters.client(t).RWMutex("rw").TryRLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	unlocks(t, r)
	unlocks(t, w)
}

func TestReal_rw_downgrade_refuses_the_lease_of_another_lock(t *testing.T) {
	c := startMasters(t, 1).client(t)
	other, err := c.RWMutex("other").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mutex := lock(t, c.Mutex("rw"))
	for _, lease := range []*redlock.Lease{nil, mutex, other} {
		if err := c.RWMutex("rw").Downgrade(ctx, lease); !errors.Is(err, redlock.ErrNotHeld) {
			t.Errorf("%v, want %v", err, redlock.ErrNotHeld)
		}
	}
	if other.Shared() {
		t.Error("it was downgraded all the same")
	}
}

func TestReal_rw_do_with_its_rlocker_reads(t *testing.T) {
	c := startMasters(t, 1).client(t)
	m := c.RWMutex("rw")
	err := redlock.Do(ctx, m.RLocker(), func(context.Context) error {
		beside, err := m.RLocker().TryLock(ctx)
		if err != nil {
			return err
		}
		defer beside.Unlock(ctx)
		if _, err := m.TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
			t.Errorf("a writer beside readers: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A reader that was told that it is its turn, and hangs, keeps those behind it
// waiting until its place ends. They wait, and do not ask again and again.
func TestReal_rw_writer_behind_a_reader_that_hangs_is_not_told(t *testing.T) {
	masters := startMasters(t, 1)
	s := masters[0]
	c := masters.client(t, redlock.WithTTL(time.Minute))
	first, err := c.RWMutex("rw").RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	queueHung(t, s, "redlock:queue:rw", "redlock:wait:rw", "r")
	go c.RWMutex("rw").Lock(ctx)
	eventually(t, "the writer is queued", func() bool { return do(t, s, "ZCARD", "redlock:queue:rw") == int64(2) })

	unlocks(t, first)

	mustSettle(t, s)
}

// queueHung puts the first waiter into a queue, which listens and does nothing.
func queueHung(t *testing.T, s *redistest.Server, queue, entries, how string) {
	t.Helper()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Do("SUBSCRIBE", "redlock:wait:hung/nonce"); err != nil {
		t.Fatal(err)
	}
	do(t, s, "ZADD", queue, 1, "hung/nonce/1")
	do(t, s, "HSET", entries, "hung/nonce/1", fmt.Sprintf("%d %s hung/nonce/1:0", time.Now().Add(time.Minute).UnixMilli(), how))
}

// mustSettle waits until a master is asked nothing any more: a thousand asks are no
// rest.
func mustSettle(t *testing.T, s *redistest.Server) {
	t.Helper()
	before := calls(t, s, "evalsha")
	for last := -1; ; time.Sleep(50 * time.Millisecond) {
		now := calls(t, s, "evalsha")
		if now == last {
			return
		}
		if last = now; now-before > 1000 {
			t.Fatalf("asked %d times", now-before)
		}
	}
}
