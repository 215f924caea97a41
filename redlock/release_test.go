package redlock_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestRelease_does_not_wait_for_the_masters(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, links := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links {
		l.set(holdReplies)
	}

	lease.Release()

	ms.mustBeFree("orders") // sent, and not confirmed yet
	mustBe(t, context.Cause(lease.Context()), redlock.ErrUnlocked)
	if n := events.count(redlock.LeaseReleased); n != 0 {
		t.Fatalf("told of %d releases before they were confirmed", n)
	}
	for _, l := range links {
		l.set(up)
	}
	if n := events.count(redlock.LeaseReleased); n != 1 {
		t.Errorf("told of %d releases, want 1", n)
	}
}

func TestRelease_that_is_not_confirmed_is_reported(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, links := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links[:3] {
		l.set(down)
	}

	lease.Release()

	last := events.events[len(events.events)-1]
	if last.Kind != redlock.LeaseReleased || last.Name != "orders" {
		t.Fatalf("told of %+v", last)
	}
	mustBe(t, last.Err, redlock.ErrNoQuorum)
}

func TestRelease_without_an_observer_deletes_everywhere(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()

	mustLock(t, c.Mutex("orders")).Release()

	ms.mustBeFree("orders")
}

func TestRelease_of_a_lease_that_has_ended_does_nothing(t *testing.T) {
	for name, end := range map[string]func(*redlock.Lease){
		"unlocked": func(l *redlock.Lease) { l.Unlock(ctx) },
		"released": (*redlock.Lease).Release,
	} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, _ := ms.client()
			lease := mustLock(t, c.Mutex("orders"))
			end(lease)
			ran := len(ms.nodes[0].ran())

			lease.Release()

			if n := len(ms.nodes[0].ran()); n != ran {
				t.Errorf("%d more commands", n-ran)
			}
			mustBe(t, lease.Unlock(ctx), redlock.ErrNotHeld)
		})
	}
}

func TestRelease_of_an_expired_lease_is_a_loss(t *testing.T) {
	ms := fiveMasters(t)
	events := &diary{}
	c, _ := ms.client(redlock.WithObserver(events.observe))
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	ms.pass(2 * second)
	events.forget()

	lease.Release()

	mustBe(t, lease.Err(), redlock.ErrExpired)
	if n := events.count(redlock.LeaseReleased); n != 0 {
		t.Errorf("told of %d releases of a lease that had expired", n)
	}
}

// A master tells a waiter what it was given, and the message is late: the waiter
// has become a lease, and that is being unlocked.
func TestA_late_message_does_not_make_an_Unlock_a_loss(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, links := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	unlocks(t, held)
	lease := receive(t, ms, got)
	late := func() {
		for i, m := range ms.nodes {
			m.mu.Lock()
			subs := maps.Clone(m.subs)
			m.mu.Unlock()
			for s := range subs {
				if i > 0 && s.link == links[i] { // the first is busy with the release
					s.Heard(fmt.Sprintf("6 orders%s", lease.Value()))
				}
			}
		}
	}
	var once sync.Once
	links[0].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRelease {
			once.Do(late)
		}
	}

	err := lease.Unlock(ctx)

	if err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
}

// The keys expire while the release is on its way: nobody else had the lock before
// it was given up.
func TestUnlock_whose_release_arrives_when_the_keys_have_expired_is_no_loss(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders", redlock.NoRenew()))
	ms.pass(940 * time.Millisecond)
	for _, l := range links {
		l.set(hung)
	}
	unlocked := make(chan error)
	go func() { unlocked <- lease.Unlock(ctx) }()
	eventually(t, "all are asked", func() bool {
		return !slices.ContainsFunc(links, func(l *link) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.waiting) == 0
		})
	})
	ms.clk.Add(45 * time.Millisecond) // less than a node timeout
	for _, l := range links {
		l.set(up)
	}

	if err := arrival(t, "the end of Unlock", unlocked); err != nil {
		t.Error(err)
	}
}
