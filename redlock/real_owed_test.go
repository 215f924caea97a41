package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// Each of two masters of three hangs in turn, while a client unlocks and is closed. Both
// keep the lock of a client that is not there any more, and no quorum is left for others.
func TestReal_L39_a_client_that_closes_leaves_nothing_where_a_master_hung(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	long := redlock.WithTTL(time.Minute) // nobody waits for it in this test
	for i := range 2 {
		c := ms.client(t, long)
		lease := lock(t, c.Mutex("orders"))
		eventually(t, "every master has the lock", func() bool { return len(ms.without(t, lease.Value())) == 0 })
		ms[i].Stop()
		eventually(t, "the connection is given up", func() bool { return givenUpBy(t, c, ms[i].Addr()) })
		if err := lease.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		select {
		case err := <-closed:
			t.Fatalf("Close returned %v at once, and the master still has the lock", err)
		case <-time.After(100 * time.Millisecond):
		}
		ms[i].Continue()
		if err := arrival(t, "the end of Close", closed); err != nil {
			t.Error(err)
		}
	}

	if keys := ms.left(t); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
	if _, err := ms.client(t, long).Mutex("orders").TryLock(ctx); err != nil {
		t.Error(err)
	}
}

// A master hangs for longer than Close waits. Close says which lock may be left, and where.
func TestReal_L39_Close_names_what_it_could_not_give_back(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	c := ms.client(t, redlock.WithTTL(2*time.Second))
	lease := lock(t, c.Mutex("orders"))
	ms[1].Stop()
	defer ms[1].Continue()
	if err := lease.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	err := c.Close()

	if !errors.Is(err, redlock.ErrUndelivered) {
		t.Fatalf("Close returned %v", err)
	}
	for _, part := range []string{ms[1].Addr(), `"orders"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %v", err, part)
		}
	}
	if strings.Contains(err.Error(), ms[0].Addr()) {
		t.Errorf("%v names a master that owes nothing", err)
	}
}

// A master that was never reached is owed nothing, and Close does not wait for it.
func TestReal_L39_Close_does_not_wait_for_a_master_that_was_never_asked(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	ms[2].Stop()
	defer ms[2].Continue()
	c := ms.client(t, redlock.WithTTL(time.Minute))
	if err := lock(t, c.Mutex("orders")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	lock(t, c.Mutex("stock"))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// givenUpBy reports whether the client has no connection to a master.
func givenUpBy(t testing.TB, c *redlock.Client, addr string) bool {
	t.Helper()
	h, err := c.Inspect(ctx, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range h.Nodes {
		if v.Node == addr {
			return errors.Is(v.Err, node.ErrDown)
		}
	}
	t.Fatalf("%s is no master of the client", addr)
	return false
}

// A client that holds ten thousand locks gives them all back while a master hangs.
func TestReal_L52_ten_thousand_locks_that_were_unlocked_while_a_master_hung_are_deleted(t *testing.T) {
	t.Parallel()
	const many, callers = 10_000, 50
	ms := startMasters(t, 3)
	c := ms.client(t, redlock.WithTTL(time.Hour))
	leases := make([]*redlock.Lease, many)
	each := func(do func(i int)) {
		var all sync.WaitGroup
		for first := range callers {
			all.Go(func() {
				for i := first; i < many; i += callers {
					do(i)
				}
			})
		}
		all.Wait()
	}
	each(func(i int) { leases[i] = lock(t, c.Mutex(fmt.Sprint("orders-", i), redlock.NoRenew())) })
	ms[0].Stop()
	each(func(i int) { unlocks(t, leases[i]) })
	eventually(t, "the connection is given up", func() bool { return givenUpBy(t, c, ms[0].Addr()) })
	ms[0].Continue()

	eventually(t, "no master has any of the locks", func() bool { return len(ms.left(t)) == 0 })
}
