package redlock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// places returns how many waiters of a lock each master has.
func (ms realMasters) places(t testing.TB, name string) []int {
	t.Helper()
	n := make([]int, len(ms))
	for i, s := range ms {
		var err error
		if n[i], err = redis.Int(s.Do("ZCARD", "redlock:queue:"+name)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// awaitQueued waits until every master has queued a client.
func (ms realMasters) awaitQueued(t testing.TB, name, client string) {
	t.Helper()
	for _, s := range ms {
		eventually(t, client+" is queued", func() bool {
			queue, err := redis.Strings(s.Do("ZRANGE", "redlock:queue:"+name, 0, -1))
			return err == nil && slices.ContainsFunc(queue, func(waiter string) bool { return strings.HasPrefix(waiter, client+"/") })
		})
	}
}

func TestReal_fair_waiters_of_many_clients_are_served_in_the_order_of_their_arrival(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]redlock.MutexOption{{redlock.Fair()}, {redlock.Fair(), redlock.Fenced()}} {
		t.Run(fmt.Sprint(len(opts)), func(t *testing.T) {
			masters := startMasters(t, 5)
			clients := []*redlock.Client{masters.client(t), masters.client(t), masters.client(t)}
			held := lock(t, clients[0].Mutex("fair", opts...))
			const waiters = 12
			var mu sync.Mutex
			var served []int
			var all sync.WaitGroup
			for i := range waiters {
				later := lockLater(t, clients[i%len(clients)].Mutex("fair", opts...))
				all.Go(func() {
					lease := later()
					mu.Lock()
					served = append(served, i)
					mu.Unlock()
					lease.Release()
				})
				eventually(t, "a majority has queued it", func() bool {
					n := masters.places(t, "fair")
					slices.Sort(n)
					return n[2] == i+1
				})
			}

			held.Release()
			all.Wait()

			if !slices.IsSorted(served) || len(served) != waiters {
				t.Errorf("served in the order %v", served)
			}
			masters.mustBeFreeSoon(t, "fair")
			eventually(t, "nobody is queued", func() bool { return slices.Max(masters.places(t, "fair")) == 0 })
		})
	}
}

// Fifty clients come at once. As soon as a majority has agreed on the ticket of each,
// they are served in just that order.
func TestReal_fair_clients_are_served_in_the_order_of_their_tickets(t *testing.T) {
	masters := startMasters(t, 5)
	const clients = 50
	lasting := redlock.WithTTL(time.Hour) // nobody asks again because time has passed
	held := lock(t, masters.client(t, lasting).Mutex("fair", redlock.Fair()))
	eventually(t, "every master has the lock", func() bool { // or one that is late gives it to a waiter
		return !slices.ContainsFunc(masters, func(s *redistest.Server) bool {
			value, _ := redis.String(s.Do("GET", "fair"))
			return value != held.Value()
		})
	})
	var mu sync.Mutex
	var served []string
	var all sync.WaitGroup
	for i := range clients {
		name := fmt.Sprint("client-", i)
		later := lockLater(t, masters.client(t, lasting, redlock.WithClientID(name)).Mutex("fair", redlock.Fair()))
		all.Go(func() {
			lease := later()
			mu.Lock()
			served = append(served, name)
			mu.Unlock()
			lease.Release()
		})
	}
	var order []string
	eventually(t, "a majority agrees on every ticket", func() bool {
		order = masters.agreedOrder(t, "fair")
		return len(order) == clients
	})

	held.Release()
	all.Wait()

	if !slices.Equal(served, order) {
		t.Errorf("served in the order\n%v, want that of the tickets,\n%v", served, order)
	}
	masters.mustKeepNothing(t)
}

// agreedOrder returns the clients whose highest ticket a majority has, in the order of
// the tickets.
func (ms realMasters) agreedOrder(t testing.TB, name string) (clients []string) {
	t.Helper()
	tickets := map[string][]int{} // of each waiter, at every master
	for _, s := range ms {
		queue, err := redis.IntMap(s.Do("ZRANGE", "redlock:queue:"+name, 0, -1, "WITHSCORES"))
		if err != nil {
			t.Fatal(err)
		}
		for waiter, ticket := range queue {
			tickets[waiter] = append(tickets[waiter], ticket)
		}
	}
	place := map[string]int{}
	for waiter, all := range tickets {
		slices.Sort(all)
		if n := len(all); n > len(ms)/2 && all[n-1] == all[n-1-len(ms)/2] {
			client, _, _ := strings.Cut(waiter, "/")
			place[client] = all[n-1]
			clients = append(clients, client)
		}
	}
	slices.SortFunc(clients, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	return clients
}

// Others of the same client may use the lock, too.
func TestReal_fair_and_other_waiters_of_one_client_are_all_served(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	held := lock(t, masters.client(t).Mutex("mixed"))
	fair := lockLater(t, c.Mutex("mixed", redlock.Fair()))
	eventually(t, "it is queued", func() bool { return slices.Min(masters.places(t, "mixed")) == 1 })
	plain := lockLater(t, c.Mutex("mixed"))
	eventually(t, "so is the other", func() bool { return slices.Min(masters.places(t, "mixed")) == 2 })

	unlocks(t, held)

	unlocks(t, fair())
	unlocks(t, plain())
	masters.mustKeepNothing(t)
}

// A fair caller that leaves makes room for the next one, also while a caller without Fair waits.
func TestReal_L54_a_fair_caller_is_queued_when_its_turn_comes_whoever_else_waits(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 3)
	var waiting atomic.Int64
	c := masters.client(t, redlock.WithObserver(func(e redlock.Event) {
		if e.Kind == redlock.LockWaiting {
			waiting.Add(1)
		}
	}))
	held := lock(t, masters.client(t).Mutex("mixed"))
	const most = 256 // fair callers of a client that the masters queue
	fair, plain := c.Mutex("mixed", redlock.Fair()), c.Mutex("mixed")
	limited, giveUp := context.WithTimeout(ctx, patience)
	defer giveUp()
	var all sync.WaitGroup
	wait := func(ctx context.Context, m *redlock.Mutex, others int64) {
		all.Go(func() {
			if lease, err := m.Lock(ctx); err == nil {
				lease.Unlock(ctx)
			}
		})
		eventually(t, "it waits", func() bool { return waiting.Load() == others+1 })
	}
	first, leave := context.WithCancel(limited)
	wait(first, fair, 0)
	wait(limited, plain, 1)
	for i := range int64(most) {
		wait(limited, fair, 2+i)
	}

	leave()

	eventually(t, "the last one is queued", func() bool { return slices.Min(masters.places(t, "mixed")) == most+1 })
	giveUp()
	all.Wait()
	unlocks(t, held)
}
