package redlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// handedOut notes the tokens of leases.
type handedOut struct {
	mu      sync.Mutex
	highest uint64
	seen    map[uint64]bool
}

func (h *handedOut) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// take checks a token that was asked for when the highest was before.
func (h *handedOut) take(t *testing.T, token, before uint64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[token] {
		t.Errorf("the token %d twice", token)
	}
	if token <= before {
		t.Errorf("the token %d after %d", token, before)
	}
	if h.seen == nil {
		h.seen = map[uint64]bool{}
	}
	h.seen[token] = true
	h.highest = max(h.highest, token)
}

// Many clients take permits side by side, also several at once, from masters whose
// counters differ.
func TestReal_semaphore_tokens_are_unique_and_rise(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	for i, s := range masters {
		do(t, s, "SET", "redlock:token:sem", 1<<40+7*i)
	}
	const clients, callers, turns = 4, 4, 20
	var tokens handedOut
	var all sync.WaitGroup
	for range clients {
		sem := masters.client(t).Semaphore("sem", 7, redlock.Fenced())
		for n := range callers {
			all.Go(func() {
				for range turns {
					before := tokens.now()
					lease, err := sem.Acquire(ctx, 1+n%3)
					if err != nil {
						t.Error(err)
						return
					}
					tokens.take(t, lease.Token(), before)
					unlocks(t, lease)
				}
			})
		}
	}
	all.Wait()
	if n := len(tokens.seen); n != clients*callers*turns {
		t.Errorf("%d tokens", n)
	}
	masters.mustKeepNothing(t)
}

// A token stays the same as long as its lease does, and a renewal brings the counter
// of a master that lost it up to it.
func TestReal_semaphore_token_is_kept_up_by_renewals(t *testing.T) {
	masters := startMasters(t, 5)
	sem := masters.client(t).Semaphore("sem", 2, redlock.Fenced())
	lease, err := sem.Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	token := lease.Token()
	eventually(t, "all have counted", func() bool {
		return len(masters.distinct(t, "redlock:token:sem")) == 1 && masters.distinct(t, "redlock:token:sem")[0] != ""
	})
	counted := masters.distinct(t, "redlock:token:sem")[0]
	masters.doAll(t, "DEL", "redlock:token:sem")

	eventually(t, "the counters are back", func() bool {
		if err := lease.Extend(ctx, 2*second); err != nil {
			t.Fatal(err)
		}
		back := masters.distinct(t, "redlock:token:sem")
		return len(back) == 1 && back[0] == counted
	})

	if lease.Token() != token || token == 0 {
		t.Errorf("the token %d was %d", lease.Token(), token)
	}
	unlocks(t, lease)
	next, err := sem.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= token {
		t.Errorf("the token %d after %d", next.Token(), token)
	}
	unlocks(t, next)
}

// A claim whose masters gave it different slots moves, counts again, and may have to
// raise what it counted: its token is above all that it has seen.
func TestReal_semaphore_token_of_who_had_to_move(t *testing.T) {
	masters := startMasters(t, 3)
	var tokens handedOut
	clients := make([]*redlock.Semaphore, 3)
	for i := range clients {
		clients[i] = masters.client(t).Semaphore("sem", 3, redlock.Fenced())
	}
	var all sync.WaitGroup
	for round := range 60 {
		start := make(chan struct{})
		before := tokens.now()
		for _, sem := range clients {
			all.Go(func() {
				<-start
				lease, err := sem.Acquire(ctx, 1)
				if err != nil {
					t.Error(round, err)
					return
				}
				tokens.take(t, lease.Token(), before)
				unlocks(t, lease)
			})
		}
		close(start)
		all.Wait()
		for i, s := range masters {
			do(t, s, "INCRBY", "redlock:token:sem", i) // so that they differ
		}
	}
}

// Masters that lost their counters count on from the clock: tokens still rise.
func TestReal_semaphore_tokens_rise_though_all_counters_are_lost(t *testing.T) {
	masters := startMasters(t, 3)
	var tokens handedOut
	for range 3 {
		sem := masters.client(t).Semaphore("sem", 2, redlock.Fenced()) // it has seen no counter
		lease, err := sem.Acquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		tokens.take(t, lease.Token(), tokens.now())
		unlocks(t, lease)
		masters.mustKeepNothing(t)
		masters.doAll(t, "DEL", "redlock:token:sem")
	}
}

// A repair puts the counter back with the slots: there is no moment at which the
// master could grant others a lower token than that of who holds some of its slots.
func TestReal_semaphore_repair_puts_the_counter_back(t *testing.T) {
	masters := startMasters(t, 3)
	sem := masters.client(t, redlock.WithTTL(time.Hour)).Semaphore("sem", 2, redlock.Fenced()) // no renewal
	lease, err := sem.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := lease.Token() / wire.MaxPermits
	eventually(t, "all have it", func() bool { return len(masters.without(t, lease.Value())) == 0 })
	lost := masters[0]
	do(t, lost, "DEL", "redlock:slots:sem", "redlock:owners:sem", "redlock:held:sem", "redlock:token:sem")

	if err := lease.Extend(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}

	eventually(t, "it is put back", func() bool { return len(masters.without(t, lease.Value())) == 0 })
	if counted, err := redis.Uint64(lost.Do("GET", "redlock:token:sem")); err != nil || counted < count {
		t.Errorf("the counter is %d, %v; want %d at least", counted, err, count)
	}
	unlocks(t, lease)
}
