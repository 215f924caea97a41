package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// S52: processes of another library store HOST:PID. One of them crashed, and this library
// goes on with its lease by Adopt. It must never take the lock of the next process of that
// host.
func TestReal_S52_an_adopted_lease_of_another_library_deletes_no_other_value(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(time.Minute))
	m := c.Mutex("nightly", redlock.NoRenew())
	masters.doAll(t, "SET", "nightly", "host:4711")
	lease, err := m.Adopt(ctx, "host:4711")
	if err != nil {
		t.Fatal(err)
	}
	masters.doAll(t, "SET", "nightly", "host:4712")

	mustBe(t, lease.Unlock(ctx), redlock.ErrLost)

	for i, value := range masters.values(t, "nightly") {
		if value != "host:4712" {
			t.Errorf("master %d stores %q, and process 4712 has the lock", i, value)
		}
	}

	again, err := m.Adopt(ctx, "host:4712")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	masters.mustBeFreeSoon(t, "nightly")
}

// S52: readers and holders of permits are of this library: a value of another one is
// nobody's there.
func TestS52_only_a_mutex_can_be_adopted_from_another_library(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	if _, err := c.RWMutex("config").RAdopt(ctx, "host:4711"); err == nil {
		t.Error("a reader's lease of another library was adopted")
	}
	if _, err := c.Semaphore("gpu", 2).Adopt(ctx, "host:4711"); err == nil {
		t.Error("a permit of another library was adopted")
	}
	for i, m := range ms.nodes {
		if ran := m.ran(); len(ran) > 0 {
			t.Errorf("master %d was asked: %q", i, ran)
		}
	}
}
