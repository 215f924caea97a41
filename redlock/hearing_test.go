package redlock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A queue gives the lock to those who can be told. Of several clients that may not
// subscribe each kept a minority of the masters, for as long as it waited: six waited for
// a minute in five of six trials.
func TestReal_L35_clients_that_may_not_subscribe_take_turns(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redlock.MutexOption{"plain": nil, "fair and fenced": {redlock.Fair(), redlock.Fenced()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 5, redistest.User("ann", "pw", append(permissions, "-subscribe")...))

			turnsOf(ms.rivals(t, opts...)).all(t, 60)
		})
	}
}

// The same where they were allowed to at first, and then their connections broke.
func TestReal_L35_clients_that_may_not_subscribe_any_more_take_turns(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5, redistest.User("ann", "pw", permissions...))
	rivals := ms.rivals(t)
	turnsOf(rivals).all(t, 10)

	ms.doAll(t, "ACL", "SETUSER", "ann", "-subscribe")
	ms.doAll(t, "CLIENT", "KILL", "TYPE", "pubsub")

	turnsOf(rivals).all(t, 60)
}

// rivals are clients that want the same lock.
func (ms realMasters) rivals(t *testing.T, opts ...redlock.MutexOption) (those []*redlock.Mutex) {
	t.Helper()
	for range 6 {
		those = append(those, ms.client(t, redlock.WithKeyPrefix("app:"), redlock.WithTTL(3*second)).Mutex("orders", opts...))
	}
	return those
}

type turnsOf []*redlock.Mutex

// all wants each of them to get the lock so many times.
func (those turnsOf) all(t *testing.T, times int) {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var over sync.WaitGroup
	for _, m := range those {
		over.Go(func() {
			for i := range times {
				lease, err := m.Lock(within)
				if err != nil {
					t.Errorf("after %d times: %v", i, err)
					return
				}
				unlocks(t, lease)
			}
		})
	}
	over.Wait()
}

// No quorum of masters tells a waiter what it is given, for three seconds. It leaves the
// queue, tries again and again, and the log says so.
func TestL35_a_waiter_that_nobody_tells_polls(t *testing.T) {
	log := &diary{}
	masters, mock, _ := waiterToldBy(t, 2, redlock.WithLogger(slog.New(log)))

	pollsAnew(t, masters, mock)
	if !log.said("too few masters have confirmed") {
		t.Errorf("the log: %q", log.lines)
	}
}

// It stays in the queue if a quorum tells it, whatever the others do.
func TestL35_a_waiter_that_a_quorum_tells_stays_in_the_queue(t *testing.T) {
	masters, mock, _ := waiterToldBy(t, 3)

	for range 3 {
		asksAnew(t, masters, mock)
	}
}

// The same where connecting took a while.
func TestL35_a_waiter_that_is_told_after_a_while_stays_in_the_queue(t *testing.T) {
	masters, mock, _ := waiterToldBy(t, 0)
	mock.Add(2 * time.Second)
	mute(masters, false)

	for range 3 {
		asksAnew(t, masters, mock)
	}
}

// A subscription can break, and be refused when it is made again.
func TestL35_a_waiter_that_nobody_tells_any_more_polls(t *testing.T) {
	masters, mock, _ := waiterToldBy(t, 5)
	asksAnew(t, masters, mock)
	mute(masters, true)
	asksAnew(t, masters, mock)

	pollsAnew(t, masters, mock)
}

// A waiter that polls goes back to the queue as soon as it is told again.
func TestL35_a_waiter_that_is_told_again_queues(t *testing.T) {
	masters, mock, _ := waiterToldBy(t, 0)
	pollsAnew(t, masters, mock)
	mute(masters, false)
	for _, m := range masters {
		m.next(t, wire.OpRelease).answer(wire.Reply{Value: int64(0)})
	}

	asksAnew(t, masters, mock)
	asksAnew(t, masters, mock)
}

// pollsAnew waits until a waiter that was queued makes an attempt instead, three seconds later.
func pollsAnew(t *testing.T, masters []*scripted, mock *clock.Mock) {
	t.Helper()
	passUntilAsked(t, masters, mock)
	for _, m := range masters {
		m.next(t, wire.OpRelease).answer(wire.Reply{Value: int64(1)})
	}
	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(wire.Reply{}) // taken
	}
}

func mute(masters []*scripted, mute bool) {
	for _, m := range masters {
		m.mutes(mute)
	}
}
