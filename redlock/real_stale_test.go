package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// L21: one master of five has a key that nobody owns: its client died in the
// middle of an attempt, or that master's clock was set back. Whichever it is,
// those who wait are handed the lock when the others release it: their timers are
// longer than this test.
func TestReal_L21_a_key_without_an_owner_on_one_master_keeps_nobody_waiting(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	opts := []redlock.Option{redlock.WithTTL(10 * time.Minute), redlock.WithRetryInterval(10 * time.Minute)}
	first, second := ms.client(t, opts...), ms.client(t, opts...)
	for i, stale := range ms {
		for what, value := range map[string]string{
			"of this library":    "gone:1/abcdefgh/1:0",
			"of another library": "a random value",
		} {
			name := fmt.Sprint("orders", i, what)
			do(t, stale, "SET", name, value, "PX", time.Hour.Milliseconds())
			held := lock(t, first.Mutex(name))
			next := lockLater(t, second.Mutex(name))
			eventually(t, "client 2 is queued", func() bool {
				return do(t, ms[(i+1)%5], "EXISTS", "redlock:queue:"+name) == int64(1)
			})

			if err := held.Unlock(ctx); err != nil {
				t.Fatal(err)
			}

			next().Release()
		}
	}
}
