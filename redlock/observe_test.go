package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// only returns the one event of a kind.
func (d *diary) only(t *testing.T, kind redlock.EventKind) redlock.Event {
	t.Helper()
	found := d.ofKind(kind)
	if len(found) != 1 {
		t.Fatalf("%d events %q, want one", len(found), kind)
	}
	return found[0]
}

type traceKey struct{}

func TestObserver_a_wait_is_two_events_however_often_the_masters_are_asked(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	events := &diary{}
	c, _ := ms.client(redlock.WithObserver(events.observe))
	traced := context.WithValue(ctx, traceKey{}, "request 7")
	got := make(chan *redlock.Lease)
	go func() {
		lease, err := c.Mutex("orders").Lock(traced)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	ms.awaitQueued("orders", 1)
	ms.pass(3 * second) // it asks again and again
	events.only(t, redlock.LockWaiting)

	held.Unlock(ctx)
	for _, m := range ms.nodes {
		m.deliver()
	}
	lease := <-got

	e := events.only(t, redlock.LockAcquired)
	if e.Lock != "mutex" || e.Name != "orders" || e.Value != lease.Value() || e.Attempts < 3 || e.Elapsed < 3*second || len(e.Votes) != 5 {
		t.Errorf("told of %+v", e)
	}
	if e.Context.Value(traceKey{}) != "request 7" {
		t.Error("without the caller's context")
	}
	if n := events.count(redlock.LockFailed); n != 0 {
		t.Errorf("%d failures of a Lock that did not fail", n)
	}
	lease.Unlock(ctx)
}

func TestObserver_a_vote_says_how_long_the_answer_took(t *testing.T) {
	events, clk := &diary{}, clock.NewMock()
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("orders").Lock(ctx)
	}, redlock.WithClock(clk), redlock.WithObserver(events.observe))
	var asked []question
	for _, m := range masters {
		asked = append(asked, m.next(t, wire.OpAcquire))
	}

	for i := range 3 { // the others are slow
		clk.Add(time.Millisecond)
		asked[i].answer(wire.Reply{Value: "OK"})
	}
	lease := <-got
	var e redlock.Event
	eventually(t, "the event", func() bool { return events.count(redlock.LockAcquired) == 1 })
	e = events.only(t, redlock.LockAcquired)

	for i, v := range e.Votes {
		vote, after := quorum.Granted, time.Duration(i+1)*time.Millisecond
		if i >= 3 {
			vote, after = quorum.Pending, 0
		}
		if v.Vote != vote || v.After != after {
			t.Errorf("%s %v after %v, want %v after %v", v.Node, v.Vote, v.After, vote, after)
		}
	}
	lease.Release()
}

func TestObserver_a_failure_has_its_votes(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	events := &diary{}
	c, _ := ms.client(redlock.WithObserver(events.observe))

	_, err := c.Mutex("orders").TryLock(ctx)

	mustBe(t, err, redlock.ErrTaken)
	if e := events.only(t, redlock.LockFailed); len(e.Votes) != 5 || e.Votes[0].Vote != quorum.Refused {
		t.Errorf("told of %+v", e)
	}
	held.Unlock(ctx)
}

func TestObserver_each_of_several_is_told_in_their_order(t *testing.T) {
	var told []string
	observer := func(name string) redlock.Option {
		return redlock.WithObserver(func(e redlock.Event) { told = append(told, name+" "+string(e.Kind)) })
	}
	c, _ := fiveMasters(t).client(observer("first"), redlock.WithObserver(nil), observer("second"))
	lease := mustLock(t, c.Mutex("name"))
	defer lease.Unlock(ctx)
	if want := []string{"first acquired", "second acquired"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestObserver_half_of_the_validity_without_a_renewal_is_a_risk(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, links := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links[:3] {
		l.set(holdReplies)
	}

	ms.pass(time.Second * 6 / 10)
	events.only(t, redlock.LeaseAtRisk)
	if !lease.Valid() {
		t.Error("told too late")
	}
	ms.pass(second)

	if e := events.only(t, redlock.LeaseLost); e.Elapsed <= 0 || e.Value != lease.Value() {
		t.Errorf("told of %+v", e)
	}
	for _, l := range links[:3] {
		l.set(up)
	}
}

func TestObserver_close_releases_leases(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, _ := ms.client(redlock.WithObserver(events.observe))
	mustLock(t, c.Mutex("orders"))

	c.Close()

	events.only(t, redlock.LeaseReleased)
}
