package redlock_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// givesUp waits for a lock until so many masters have the waiter in their queue, and
// leaves.
func givesUp(t *testing.T, ms realMasters, c *redlock.Client, name, queue string) {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	gone := make(chan error, 1)
	go func() {
		_, err := c.Mutex(name).Lock(within)
		gone <- err
	}()
	eventually(t, "it is queued", func() bool { return ms.inQueue(t, queue) == len(ms) })
	cancel()
	mustBe(t, arrival(t, "the end of the wait", gone), context.Canceled)
}

// inQueue returns how many entries a queue has, at all masters together.
func (ms realMasters) inQueue(t testing.TB, queue string) (n int) {
	t.Helper()
	for _, s := range ms {
		n += int(do(t, s, "ZCARD", queue).(int64))
	}
	return n
}

// L27: a user who may not take out of a queue who has gone still gets the lock, by
// looking for it, and the masters go on.
func TestReal_L27_without_zrem_waiters_look_for_the_lock(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.User("ann", "pw", append(permissions, "-zrem")...))
	ms.markAsNew(t, "app:")
	book := &diary{}
	prefix := redlock.WithKeyPrefix("app:")
	lease := lock(t, ms.client(t, prefix).Mutex("name"))
	givesUp(t, ms, ms.client(t, prefix), "name", "app:redlock:queue:name")
	waiter := lockLater(t, ms.client(t, prefix, redlock.WithLogger(slog.New(book))).Mutex("name"))
	eventually(t, "two are queued", func() bool { return ms.inQueue(t, "app:redlock:queue:name") == 2*len(ms) })

	unlocks(t, lease)

	waiter()
	if !book.said("not allowed to queue") {
		t.Errorf("the log does not say that the lock is polled: %q", book.all())
	}
	ms.doAll(t, "PING")
}
