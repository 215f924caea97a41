package redlock_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A thousand waiters of five clients on one fair lock, and as many on one
// semaphore: all are served, and none of them costs much.
func TestReal_a_crowd_of_waiters_is_served(t *testing.T) {
	for _, kind := range []struct {
		name, queue string
		permits     int
		each        int // callers of a client
		queued      int // of these, at the masters
		take        func(c *redlock.Client) (*redlock.Lease, error)
	}{
		{"fair", "redlock:queue:crowd", 1, 200, 200, func(c *redlock.Client) (*redlock.Lease, error) {
			return c.Mutex("crowd", redlock.Fair()).Lock(ctx)
		}},
		{"semaphore", "redlock:permitqueue:crowd", 10, 200, 10, func(c *redlock.Client) (*redlock.Lease, error) {
			return c.Semaphore("crowd", 10).Acquire(ctx, 1)
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			const clients = 5
			each := kind.each
			masters := startMasters(t, 3)
			lasting := redlock.WithTTL(time.Hour) // no waiter asks by itself for as long as this takes
			var held []*redlock.Lease
			for first := masters.client(t, lasting); len(held) < kind.permits; {
				lease, err := kind.take(first)
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, lease)
			}
			before := heapInUse()
			var all sync.WaitGroup
			var those []*redlock.Client
			for range clients {
				c := masters.client(t, lasting)
				those = append(those, c)
				for range each {
					all.Go(func() {
						lease, err := kind.take(c)
						if err != nil {
							t.Error(err)
							return
						}
						unlocks(t, lease)
					})
				}
			}
			eventually(t, "the first callers of each client are queued", func() bool {
				for _, s := range masters {
					if do(t, s, "ZCARD", kind.queue) != int64(clients*kind.queued) {
						return false
					}
				}
				return true
			})
			memory := (heapInUse() - before) / int64(clients*each)
			began := time.Now()
			for _, lease := range held {
				unlocks(t, lease)
			}
			all.Wait()
			took := time.Since(began)

			commands := 0
			for _, c := range those {
				for _, n := range c.Nodes() {
					commands += int(n.Commands)
				}
			}
			t.Logf("%d were served in %v, %.1f commands each, %d bytes for each that waits", clients*each, took, float64(commands)/float64(clients*each), memory)
			// Twelve or fifteen at three masters; more where masters are called that differ.
			if commands > 100*clients*each {
				t.Errorf("%d commands for %d acquisitions", commands, clients*each)
			}
			if memory > 64<<10 {
				t.Errorf("%d bytes for each that waits", memory)
			}
			masters.mustKeepNothing(t)
		})
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
