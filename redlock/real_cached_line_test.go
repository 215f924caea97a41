package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// inLine has a caller wait until another one of its process has passed the lock on.
func (d *diary) inLine(t *testing.T, m *redlock.Mutex) <-chan *redlock.Lease {
	before := len(d.ofKind(redlock.LockWaiting))
	got := leaseLater(m)
	eventually(t, "it waits", func() bool { return len(d.ofKind(redlock.LockWaiting)) > before })
	return got
}

// TryLock says whether another process has the lock, too few masters answer, or its context has ended.
func TestReal_TryLock_of_a_cached_lock_says_why(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	other := masters.client(t).Mutex("lock")
	c := masters.client(t)
	held := lock(t, other)
	if _, err := c.Mutex("lock", redlock.Cached()).TryLock(ctx); !errors.Is(err, redlock.ErrTaken) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("where another process uses it: %v", err)
	}
	ending, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := masters.client(t, redlock.WithNodeTimeout(patience)).Mutex("lock", redlock.Cached()).TryLock(ending); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("where its context has ended: %v", err)
	}
	unlocks(t, held)
	for _, m := range masters[1:] {
		m.Stop()
		defer m.Continue()
	}
	if _, err := c.Mutex("lock", redlock.Cached()).TryLock(ctx); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrTaken) {
		t.Errorf("where two of three masters hang: %v", err)
	}
}

// Who waits behind others of the process says whether the lock is taken, or too few masters answer.
func TestReal_who_waits_in_the_process_for_a_cached_lock_says_why(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	var told diary
	c := masters.client(t, redlock.WithObserver(told.observe))
	m := c.Mutex("lock", redlock.Cached())
	held := lock(t, m)
	brief := func() context.Context {
		ending, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		t.Cleanup(cancel)
		return ending
	}
	if _, err := m.Lock(brief()); !errors.Is(err, redlock.ErrTaken) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("behind one that uses it: %v", err)
	}
	other := masters.client(t).Mutex("another")
	foreign := lock(t, other)
	behind := masters.client(t, redlock.WithObserver(told.observe)).Mutex("another", redlock.Cached())
	told.inLine(t, behind)
	if _, err := behind.Lock(brief()); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("behind one that waits for another process: %v", err)
	}
	unlocks(t, foreign)
	for _, s := range masters[1:] {
		s.Stop()
		defer s.Continue()
	}
	eventually(t, "the lease ends", func() bool { return !held.Valid() })
	told.inLine(t, m)
	eventually(t, "the client knows that they hang", func() bool { return errors.Is(c.Healthy(), redlock.ErrNoQuorum) })

	if _, err := m.Lock(brief()); !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrTaken) {
		t.Errorf("behind one that asks masters of which two of three hang: %v", err)
	}
}

// A caller that has waited in the process asks the masters as one that has just come.
func TestReal_who_has_waited_in_the_process_for_a_cached_lock_asks_once(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	var told diary
	m := masters.client(t, redlock.WithObserver(told.observe)).Mutex("lock", redlock.Cached())
	held := lock(t, m)
	got := told.inLine(t, m)
	for range 5 { // each wait for longer than a node timeout, and longer than callers pass it
		if _, err := masters.client(t).Mutex("lock", redlock.Cached()).TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
			t.Fatal(err)
		}
	}

	unlocks(t, held)

	unlocks(t, arrival(t, "the lock", got))
	if e := told.ofKind(redlock.LockAcquired)[1]; e.Attempts != 1 || !e.Waited {
		t.Errorf("the masters were asked %d times, it waited: %v", e.Attempts, e.Waited)
	}
}

// The observer is told once that a caller waits, which waits in the process and then at the masters.
func TestReal_who_waits_for_a_cached_lock_in_the_process_and_at_the_masters(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	var told diary
	m := masters.client(t, redlock.WithObserver(told.observe), redlock.WithClientID("ann")).Mutex("lock", redlock.Cached())
	held := lock(t, m)
	got := told.inLine(t, m)
	other := leaseLater(masters.client(t, redlock.WithClientID("bob")).Mutex("lock"))
	masters.awaitQueued(t, "lock", "bob")
	time.Sleep(20 * time.Millisecond) // callers pass it for 10ms
	unlocks(t, held)
	between := arrival(t, "the lock of another process", other)
	masters.awaitQueued(t, "lock", "ann")
	unlocks(t, between)

	unlocks(t, arrival(t, "the lock", got))

	if n := len(told.ofKind(redlock.LockWaiting)); n != 1 {
		t.Errorf("told %d times that it waits", n)
	}
	if e := told.ofKind(redlock.LockAcquired)[1]; !e.Waited || e.Elapsed < 20*time.Millisecond {
		t.Errorf("%+v", e)
	}
	for _, e := range told.ofKind(redlock.LeaseReleased) {
		if e.Elapsed <= 0 || e.Elapsed > patience {
			t.Errorf("held for %v", e.Elapsed)
		}
	}
}
