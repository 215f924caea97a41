package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A writer that has become a reader is put back as a reader where a master has lost it: as
// a writer it would keep readers out there.
func TestReal_rw_a_downgraded_writer_is_repaired_as_a_reader(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithTTL(3*time.Second))
	m := c.RWMutex("rw")
	lease, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Downgrade(ctx, lease); err != nil {
		t.Fatal(err)
	}
	lost := masters[1]
	eventually(t, "every master knows that it reads", func() bool {
		for _, s := range masters {
			if do(t, s, "EXISTS", "redlock:readers:rw") == int64(0) {
				return false
			}
		}
		return true
	})
	do(t, lost, "DEL", "rw", "redlock:readers:rw", "redlock:reading:rw")

	eventually(t, "a renewal has repaired it", func() bool {
		return do(t, lost, "EXISTS", "rw", "redlock:readers:rw") != int64(0)
	})

	if do(t, lost, "EXISTS", "rw") == int64(1) {
		t.Error("a reader is stored as a writer")
	}
	if do(t, lost, "ZCARD", "redlock:readers:rw") != int64(1) {
		t.Error("the reader was not stored again")
	}
	unlocks(t, lease)
}
