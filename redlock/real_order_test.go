package redlock_test

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/redlock"
)

// A client whose wall clock is an hour behind waits behind those that came before it.
func TestReal_L41_who_came_first_is_served_first_whatever_its_wall_clock_says(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	held := lock(t, ms.client(t, forHalfAnHour).Mutex("orders"))
	first := ms.client(t, forHalfAnHour, redlock.WithClock(shifted{clock.New(), time.Hour}), redlock.WithClientID("first"))
	second := ms.client(t, forHalfAnHour, redlock.WithClock(shifted{clock.New(), -time.Hour}), redlock.WithClientID("second"))

	got := make(chan *redlock.Lease, 1)
	waits := func(c *redlock.Client) {
		go func() {
			lease, err := c.Mutex("orders").Lock(ctx)
			if err == nil {
				got <- lease
			}
		}()
	}
	waits(first)
	eventually(t, "the first is queued", func() bool { return ms.queuedFor(t, "orders", 1) })
	time.Sleep(time.Second) // longer than a round trip, within which either may be first
	waits(second)
	eventually(t, "the second is queued", func() bool { return ms.queuedFor(t, "orders", 2) })

	for _, want := range []string{"first", "second"} {
		unlocks(t, held)
		held = arrival(t, "the lock", got)
		if client, _, _ := values.Parse(held.Value()); client != want {
			t.Fatalf("%s is served before %s", client, want)
		}
	}
	unlocks(t, held)
}
