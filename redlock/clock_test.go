package redlock_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// watching is a master that knows how our own clock runs.
type watching struct {
	*link
	mu   sync.Mutex
	pace float64
}

func (w *watching) Unnoticed() time.Duration { return 20 * time.Millisecond }

func (w *watching) Pace() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pace
}

func (w *watching) set(pace float64) {
	w.mu.Lock()
	w.pace = pace
	w.mu.Unlock()
	w.forgets()
}

// watchedClient returns a client of one master that knows how the client's clock runs.
func watchedClient(t *testing.T, pace float64) (*masters, *watching, *redlock.Client) {
	t.Helper()
	ms := newMasters(t, 1)
	w := &watching{link: &link{memory: ms.nodes[0]}, pace: pace}
	c, err := redlock.New([]node.Node{w}, redlock.WithClock(ms.clk), redlock.WithTTL(10*second), relaxed,
		redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.link.set(up)
		c.Close()
	})
	return ms, w, c
}

// S47: a lease of which it turns out that our own clock counts it too long ends earlier,
// and its owner is told so in time.
func TestS47_a_lease_is_counted_by_the_clocks_of_most_masters(t *testing.T) {
	ms, w, c := watchedClient(t, 1)
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	until := lease.Until().Sub(ms.clk.Now())
	if want := 9878 * time.Millisecond; until != want {
		t.Fatalf("valid for %v, want %v: 1 %% and 22 ms less than the TTL", until, want)
	}

	w.set(1.25) // in 8 s of ours 10 pass

	if got := lease.Until().Sub(ms.clk.Now()); got != until*4/5 {
		t.Errorf("valid for %v, want %v", got, until*4/5)
	}
	ms.pass(until*4/5 - 21*time.Millisecond)
	if !lease.Valid() {
		t.Error("ended before its time")
	}
	ms.pass(21 * time.Millisecond)
	select {
	case <-lease.Done():
	default:
		t.Error("its owner is not told that it has ended")
	}
}

// S60: a client that does not know yet how its own clock runs has shorter leases, and
// renews them earlier. A renewal finds it known.
func TestS60_a_lease_of_a_new_client_is_shorter_until_it_is_renewed(t *testing.T) {
	ms, w, c := watchedClient(t, 2)
	lease := mustLock(t, c.Mutex("orders"))
	w.mu.Lock()
	w.pace = 1
	w.mu.Unlock()
	const whole = 9878 * time.Millisecond
	if got := lease.Until().Sub(ms.clk.Now()); got != whole/2 {
		t.Errorf("valid for %v, want %v", got, whole/2)
	}
	begun := ms.clk.Now()
	ms.pass(10 * second * 3 / 16)
	if got := lease.Until().Sub(begun); got <= whole {
		t.Errorf("after a third of what it was valid for it was not renewed: valid for %v", got)
	}
}

// S60: a client that never learns how its own clock runs has shorter leases, and renews all of them
// in time.
func TestS60_leases_are_renewed_in_time_as_long_as_the_pace_is_unknown(t *testing.T) {
	t.Parallel()
	ms, _, c := watchedClient(t, 4)
	lease := mustLock(t, c.Mutex("orders"))

	ms.pass(30 * second)

	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

// S47, while a renewal is under way that nobody answers: its owner is told as early.
func TestS47_a_lease_that_is_being_renewed_is_counted_by_the_clocks_of_most_masters(t *testing.T) {
	ms, w, c := watchedClient(t, 1)
	lease := mustLock(t, c.Mutex("orders"))
	w.link.set(hung)
	ms.pass(4 * second)

	w.set(1.25)

	ms.pass(lease.Until().Sub(ms.clk.Now()) + time.Millisecond)
	if lease.Valid() {
		t.Error("valid for longer than it is")
	}
	select {
	case <-lease.Done():
	default:
		t.Error("its owner is not told that it has ended")
	}
}
