package redlock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// A queue gives the lock to those who can be told. Of several clients that may not
// subscribe each kept a minority of the masters, for as long as it waited: six waited for
// a minute in five of six trials.
func TestReal_L35_clients_that_may_not_subscribe_take_turns(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5, redistest.User("ann", "pw", append(permissions, "-subscribe")...))
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	var all sync.WaitGroup
	for range 6 {
		c := ms.client(t, redlock.WithKeyPrefix("app:"))
		all.Go(func() {
			for range 200 {
				lease, err := c.Mutex("orders").Lock(within)
				if err != nil {
					t.Error(err)
					return
				}
				unlocks(t, lease)
			}
		})
	}
	all.Wait()
}

// A quorum of masters has not confirmed after a second that a waiter is told what it is
// given. It leaves the queue, tries again and again, and the log says so.
func TestL35AWaiterThatMayNotSubscribePolls(t *testing.T) {
	log := &diary{}
	masters, mock, _ := waiterHeardBy(t, 2, redlock.WithLogger(slog.New(log)))

	mock.Add(time.Second)

	for _, m := range masters {
		m.next(t, node.OpAsk).answer(stillQueued)
	}
	for _, m := range masters {
		m.next(t, node.OpRelease).answer(node.Reply{Value: int64(1)})
	}
	mock.Add(time.Second)
	for _, m := range masters {
		m.next(t, node.OpAcquire).answer(node.Reply{}) // taken
	}
	if !log.said("too few masters let this client subscribe") {
		t.Errorf("the log: %q", log.lines)
	}
}

// It stays in the queue if a quorum has confirmed it, whatever the others say.
func TestL35AWaiterThatAQuorumTellsStaysInTheQueue(t *testing.T) {
	masters, mock, _ := waiterHeardBy(t, 3)

	for range 3 {
		asksAnew(t, masters, mock)
	}
}

// It stays in the queue, too, if it has been told since that it is heard: connecting may
// take a while.
func TestL35AWaiterThatIsToldLateStaysInTheQueue(t *testing.T) {
	masters, mock, _ := waiterHeardBy(t, 0)
	for _, m := range masters[:3] {
		m.missed()
		m.next(t, node.OpAsk).answer(stillQueued)
	}

	for range 3 {
		asksAnew(t, masters, mock)
	}
}
