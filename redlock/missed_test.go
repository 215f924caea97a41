package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A waiter's ask is on its way to a master when messages may have been missed there. The
// second ask must not overtake the first one: if that could not be sent after all, its
// release would be taken for one that has nothing to release, and the lock would stay
// for its TTL (seed 6618 of the fair fenced locks).
func TestL3_a_master_is_not_asked_again_before_the_ask_that_is_on_its_way(t *testing.T) {
	w := waitHeldUpAt(t, 0)

	w.masters.nodes[0].missed()

	w.mustAskTheMasterTwiceAndWin(t)
}

// A waiter's repeated ask is on its way to a master when it asks anew, and messages may
// have been missed there once more. What the second ask was given may have been among
// them, and the answer to the first says nothing of it.
func TestL31_what_another_ask_was_given_is_asked_for_beside_the_one_on_its_way(t *testing.T) {
	masters, mock, got := queuedWaiter(t)
	masters[0].missed()
	onItsWay := masters[0].next(t, wire.OpAsk)
	asksAnew(t, masters, mock)

	masters[0].missed()

	onItsWay.answer(stillQueued)
	masters[0].next(t, wire.OpAsk).answer(wire.Reply{Value: "OK"})
	for _, m := range masters[1:3] {
		m.missed()
		m.next(t, wire.OpAsk).answer(wire.Reply{Value: "OK"})
	}
	arrival(t, "the lock", got)
}

// The same, and only now is the repeat of the first ask answered: it does not stand for
// that of the second, which is still on its way.
func TestL31_the_answer_to_an_earlier_repeat_ends_no_other(t *testing.T) {
	masters, mock, _ := queuedWaiter(t)
	masters[0].missed()
	first := masters[0].next(t, wire.OpAsk)
	asksAnew(t, masters, mock)
	masters[0].missed()
	masters[0].next(t, wire.OpAsk)

	first.answer(stillQueued)
	masters[0].missed()

	masters[0].mustNotBeAsked(t)
}

// Messages may be missed at a master while a repeated ask is on its way. The master may
// have run that before it gave the lock in a message that was lost, so the answer says
// nothing of it.
func TestL33_what_is_missed_while_an_ask_is_repeated_is_asked_for_afterwards(t *testing.T) {
	masters, _, got := queuedWaiter(t)
	for _, m := range masters[:3] {
		m.missed()
		repeated := m.next(t, wire.OpAsk)
		m.missed()
		m.missed()
		m.mustNotBeAsked(t)
		repeated.answer(stillQueued)
	}

	for _, m := range masters[:3] {
		m.next(t, wire.OpAsk).answer(wire.Reply{Value: "OK"})
		m.mustNotBeAsked(t)
	}
	arrival(t, "the lock", got)
}

// stillQueued is how a master answers a waiter that it has not given the lock.
var stillQueued = wire.Reply{Value: []any{int64(60_000), int64(0)}}

// queuedWaiter starts a waiter, which all masters have queued.
func queuedWaiter(t *testing.T) ([]*scripted, *clock.Mock, <-chan *redlock.Lease) {
	t.Helper()
	return waiterToldBy(t, 5)
}

// waiterToldBy is queuedWaiter where so many masters tell the waiter what it is given.
func waiterToldBy(t *testing.T, telling int, opts ...redlock.Option) ([]*scripted, *clock.Mock, <-chan *redlock.Lease) {
	t.Helper()
	mock := clock.NewMock()
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("orders").Lock(ctx)
	}, append(opts, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second), redlock.WithTTL(60*second))...)
	for _, m := range masters[telling:] {
		m.mutes(true)
	}
	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(wire.Reply{}) // taken
	}
	for _, m := range masters {
		m.next(t, wire.OpAsk).answer(stillQueued)
	}
	return masters, mock, got
}

// asksAnew waits for the next ask of a waiter, which all masters queue.
func asksAnew(t *testing.T, masters []*scripted, mock *clock.Mock) {
	t.Helper()
	passUntilAsked(t, masters, mock)
	for _, m := range masters {
		m.next(t, wire.OpAsk).answer(stillQueued)
	}
}

// passUntilAsked lets time pass until the masters are asked. The waiter may set its timer only
// after some of it.
func passUntilAsked(t *testing.T, masters []*scripted, mock *clock.Mock) {
	t.Helper()
	eventually(t, "the next command", func() bool {
		mock.Add(second)
		masters[1].mu.Lock()
		defer masters[1].mu.Unlock()
		return len(masters[1].open) > 0
	})
}

// The first ask is on its way to a master when the others have decided it, and the time
// for the second has come. The second must not overtake the first: if that could not be
// sent after all, the release would be taken for one that has nothing to release, and the
// lock would stay for its TTL (seed 30076).
func TestL32_an_ask_does_not_overtake_the_one_before(t *testing.T) {
	w := waitHeldUpAt(t, 4)

	for range 20 {
		w.masters.clk.Add(50 * time.Millisecond)
	}

	w.mustAskTheMasterTwiceAndWin(t)
}

// An ask is due, and another master is to be asked again, both as soon as the ask that is
// on its way has been given to all masters. One ask of all does for both.
func TestAn_ask_that_is_due_is_sent_once(t *testing.T) {
	w := waitHeldUpAt(t, 4)
	for range 20 {
		w.masters.clk.Add(50 * time.Millisecond)
	}
	others, before := w.masters.nodes[:2], [2]int{}
	for i, m := range others {
		before[i] = m.count(wire.OpAsk)
	}
	others[0].missed()

	w.mustAskTheMasterTwiceAndWin(t)

	for i, m := range others {
		if n := m.count(wire.OpAsk) - before[i]; n != 1 {
			t.Errorf("%s was asked %d times meanwhile, want once", m.addr, n)
		}
	}
}

// The first master that says it is the waiter's turn sets a timer of about a round trip.
// A majority says so, and the waiter asks at once. If that comes to nothing, the waiter
// pauses: the timer was for the ask before.
func TestThe_timer_of_an_earlier_ask_does_not_have_the_next_followed_by_another(t *testing.T) {
	masters, mock, _ := permitWaiter(t)
	asks := questions(t, masters, wire.OpAsk)
	mock.Add(second) // a round trip
	for _, ask := range asks {
		ask.answer(noSlots())
	}
	saysItIsTheTurnOf(asks[0], masters[:3])
	asks = questions(t, masters, wire.OpAsk)
	mock.Add(second)

	for _, ask := range asks {
		ask.answer(noSlots())
	}

	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
}

// Masters say that it is the waiter's turn while they are being asked. The next ask comes
// when that one is decided, and not before.
func TestAn_ask_that_is_due_waits_for_the_one_under_way(t *testing.T) {
	masters, _, got := permitWaiter(t)
	asks := questions(t, masters, wire.OpAsk)
	time.Sleep(50 * time.Millisecond) // it has been given to all masters
	saysItIsTheTurnOf(asks[0], masters)
	for _, m := range masters {
		m.mustNotBeAsked(t)
	}

	for _, ask := range asks {
		ask.answer(noSlots())
	}

	for _, ask := range questions(t, masters, wire.OpAsk) {
		ask.answer(slots("1", ""))
	}
	arrival(t, "the permit", got)
}

// A waiter is given the lock by messages while its next ask stands still before the last
// master. It has the lock as soon as that goes on, and not before: the ask could run
// behind the release of the lease.
func TestA_waiter_that_won_while_its_ask_is_on_its_way_is_woken(t *testing.T) {
	ms := fiveMasters(t)
	holder, _ := ms.client()
	held := mustLock(t, holder.Mutex("orders"))
	c, links := ms.client()
	leases := make(chan *redlock.Lease, 1)
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		leases <- lease
	}()
	ms.awaitQueued("orders", 1)
	reached, goOn, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var began atomic.Bool
	links[4].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpAsk && began.CompareAndSwap(false, true) {
			close(reached)
			<-goOn
		}
	}
	go func() { // until its timer fires
		defer close(asked)
		for !began.Load() {
			ms.clk.Add(10 * time.Millisecond)
		}
	}()
	arrival(t, "the second ask", reached)
	unlocks(t, held)
	time.Sleep(100 * time.Millisecond) // it wakes up, and sleeps again
	if len(leases) > 0 {
		t.Error("a lease while an ask is on its way")
	}

	close(goOn)

	<-asked
	unlocks(t, arrival(t, "the lock", leases))
	ms.mustBeFree("orders")
}

// permitWaiter starts a waiter for one of five permits, of which there are none left.
func permitWaiter(t *testing.T) ([]*scripted, *clock.Mock, <-chan *redlock.Lease) {
	t.Helper()
	mock := clock.NewMock()
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Semaphore("sem", 5).Acquire(ctx, 1)
	}, redlock.WithClock(mock), redlock.WithNodeTimeout(10*second), redlock.WithTTL(600*second))
	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(noSlots())
	}
	return masters, mock, got
}

// saysItIsTheTurnOf has masters tell whoever asked for a permit that it may ask again.
func saysItIsTheTurnOf(ask question, masters []*scripted) {
	for _, m := range masters {
		m.says("3:t sem" + ask.cmd.Args[0])
	}
}

// heldUp is a waiter for a lock that another client holds. Its first ask stands still
// before one of the masters.
type heldUp struct {
	masters *masters
	master  int
	held    *redlock.Lease
	goOn    chan struct{}
	leases  chan *redlock.Lease
}

// waitHeldUpAt starts a waiter, and returns when its first ask has come to the master.
func waitHeldUpAt(t *testing.T, master int) *heldUp {
	t.Helper()
	ms := fiveMasters(t)
	holder, _ := ms.client()
	w := &heldUp{ms, master, mustLock(t, holder.Mutex("orders")), make(chan struct{}), make(chan *redlock.Lease, 1)}
	c, links := ms.client()
	asked := make(chan struct{})
	var began atomic.Bool
	links[master].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpAsk && began.CompareAndSwap(false, true) {
			close(asked)
			<-w.goOn
		}
	}
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		w.leases <- lease
	}()
	arrival(t, "the first ask", asked)
	return w
}

// asks counts the asks that the master ran.
func (w *heldUp) asks() (n int) {
	for _, cmd := range w.masters.nodes[w.master].ran() {
		if cmd == "ask orders" {
			n++
		}
	}
	return n
}

// mustAskTheMasterTwiceAndWin wants nothing to have overtaken the first ask. When that
// goes on, the second follows, and the lock changes hands.
func (w *heldUp) mustAskTheMasterTwiceAndWin(t *testing.T) {
	t.Helper()
	if n := w.asks(); n != 0 {
		t.Errorf("the master ran %d asks before the first was sent", n)
	}
	close(w.goOn)
	eventually(t, "the master is asked again", func() bool { return w.asks() >= 2 })
	time.Sleep(100 * time.Millisecond) // the mocked clock stands still
	if n := w.asks(); n != 2 {
		t.Errorf("the master was asked %d times, want twice", n)
	}
	if err := w.held.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := arrival(t, "the lock", w.leases).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	w.masters.mustBeFree("orders")
}
