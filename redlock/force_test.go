package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

func TestForceUnlock_takes_the_lock_from_its_holder(t *testing.T) {
	client, masters := redlocktest.New(t)
	holder := lock(t, client.Mutex("name", redlock.NoRenew()))

	found, err := masters.Client().ForceUnlock(ctx, "name")

	if err != nil || found.Value != holder.Value() {
		t.Errorf("found %q, error %v; want the holder's value", found.Value, err)
	}
	if got := masters.Holders("name"); got != [redlocktest.Size]string{} {
		t.Errorf("the masters still store %q", got)
	}
	mustBe(t, holder.Unlock(ctx), redlock.ErrLost)
}

func TestForceUnlock_lets_the_next_in(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t, redlock.WithRetryInterval(time.Hour)) // only a wake-up hands the lock on
		lock(t, client.Mutex("name", redlock.NoRenew()))
		other := masters.Client(redlock.WithRetryInterval(time.Hour))
		next := lockLater(t, other.Mutex("name"))
		synctest.Wait() // until it waits
		forced := time.Now()

		if _, err := client.ForceUnlock(t.Context(), "name"); err != nil {
			t.Fatal(err)
		}

		lease := next()
		if took := time.Since(forced); took > time.Second {
			t.Errorf("the next had it after %v, want a wake-up", took)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestForceUnlock_without_a_quorum(t *testing.T) {
	client, masters := redlocktest.New(t)
	masters.LoseQuorum()
	_, err := client.ForceUnlock(ctx, "name")
	mustBe(t, err, redlock.ErrNoQuorum)
}
