package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
)

// Masters of a client at rest are asked nothing. The first vote after the rest counts at once: its
// master was looked at just before.
func TestReal_rest_asks_nothing_and_the_first_vote_after_it_counts(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	c := masters.client(t, redlock.WithNodeTimeout(second), seam.Option(seam.Seams{Rest: 100 * time.Millisecond}).(redlock.Option))
	m := c.Mutex("orders")
	sent := func() uint64 { return sentBy([]*redlock.Client{c}) }
	for range 2 {
		eventually(t, "it rests", func() bool {
			before := sent()
			time.Sleep(2200 * time.Millisecond) // two heartbeats
			return sent() == before
		})
		lease, err := m.TryLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		unlocks(t, lease)
	}
}
