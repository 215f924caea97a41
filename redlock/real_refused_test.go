package redlock_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

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

// L28: who gives up while a master takes no writes is taken out of its queue when it
// takes them again, long before the registration ends.
func TestReal_L28_who_gives_up_at_a_master_that_refuses_is_taken_out_later(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	long := redlock.WithTTL(30 * time.Minute)
	holder, client := ms.client(t, long), ms.client(t, long)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	gone := make(chan string, len(kinds()))
	for _, k := range kinds() {
		k.rival(t, holder)
	}
	eventually(t, "every master has every lock", func() bool { // or one gives it to who is to be queued
		var keys [3][]string
		for i, s := range ms {
			keys[i] = slices.Sorted(slices.Values(keysOf(t, s)))
		}
		return slices.Equal(keys[0], keys[1]) && slices.Equal(keys[1], keys[2])
	})
	for _, k := range kinds() {
		go func() {
			k.lock(within, client)
			gone <- k.name
		}()
	}
	for _, k := range kinds() {
		eventually(t, k.name+" is queued", func() bool { return ms.queuedFor(t, k.name, 1) })
	}

	do(t, ms[0], "CONFIG", "SET", "min-replicas-to-write", "1")
	cancel()
	for range kinds() {
		arrival(t, "the end of each wait", gone)
	}
	for _, k := range kinds() {
		eventually(t, k.name+" has gone from the others", func() bool { return ms[1:].queuedFor(t, k.name, 0) })
		if !ms[:1].queuedFor(t, k.name, 1) {
			t.Fatalf("%s: the master took the writes that it was to refuse", k.name)
		}
	}
	do(t, ms[0], "CONFIG", "SET", "min-replicas-to-write", "0")

	for _, k := range kinds() {
		eventually(t, k.name+" has gone from the one that refused", func() bool { return ms[:1].queuedFor(t, k.name, 0) })
	}
}
