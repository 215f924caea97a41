package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// L29: a Multi that has gone may be queued for several locks, and be told of all at
// once. It is taken out of each queue.
func TestReal_L29_a_Multi_that_has_gone_leaves_every_queue(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 1)
	long := redlock.WithTTL(30 * time.Minute)
	holder, client := ms.client(t, long), ms.client(t, long)
	names := []string{"a", "b", "c"}
	held := lock(t, holder.Multi(names))
	lock(t, holder.Mutex("another"))
	own := lock(t, client.Mutex("its own")).Value()
	lockLater(t, client.Mutex("another")) // so it listens
	eventually(t, "the client listens", func() bool { return ms.inQueue(t, "redlock:queue:another") == 1 })
	gone := own[:strings.LastIndex(own, "/")] + "/zzz:1"
	runAt(t, ms[0], wire.ManyOf("", names).Take(wire.OpAsk, gone, 30*time.Minute, 1, 0, wire.WaitForEach))
	for _, name := range names {
		if !ms.queuedFor(t, name, 1) {
			t.Fatalf("nobody is queued for %s", name)
		}
	}

	unlocks(t, held)

	for _, name := range names {
		eventually(t, "nobody is queued for "+name, func() bool { return ms.queuedFor(t, name, 0) })
	}
}
