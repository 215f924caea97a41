package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// race is a leader, and two clients that wait in this order: ann, and bob at addrs.
type race struct {
	leader   *redlock.Client
	old      *redlock.Lease
	ann, bob <-chan *redlock.Lease
}

func startRace(t *testing.T, masters realMasters, addrs []string, opts ...redlock.Option) race {
	t.Helper()
	r := race{leader: masters.client(t, redlock.WithTTL(long))}
	r.old = campaigns(t, r.leader)
	r.ann = candidate(t, masters.client(t, append(opts, redlock.WithClientID("ann"))...))
	awaitCandidates(t, r.leader, "ann")
	r.bob = candidate(t, dial(t, addrs, append(opts, redlock.WithClientID("bob"))...))
	awaitCandidates(t, r.leader, "ann", "bob")
	eventually(t, "every master knows that they are there", func() bool { // it hands nothing to one that does not listen
		return masters.queuedFor(t, "boss", 2) && masters.listeners(t) == 2*len(masters)
	})
	return r
}

func (r *race) transfers(t *testing.T) {
	t.Helper()
	if err := r.leader.Election("boss").Transfer(ctx, r.old, "bob"); err != nil {
		t.Fatal(err)
	}
}

func TestReal_Transfer_while_a_minority_of_the_masters_fails(t *testing.T) {
	t.Parallel()
	whileMinorityFails(t, func(t *testing.T, masters realMasters, fail func() realMasters, mend func()) {
		r := startRace(t, masters, redistest.URLs(masters), redlock.WithTTL(long))
		fail()

		r.transfers(t)

		lease := arrival(t, "bob leads", r.bob)
		mustBe(t, r.old.Err(), redlock.ErrUnlocked)
		if lease.Token() <= r.old.Token() {
			t.Errorf("token %d after %d", lease.Token(), r.old.Token())
		}
		mend()
		lease.Unlock(ctx) // masters that were restarted have forgotten it
		lease = arrival(t, "ann leads", r.ann)
		lease.Unlock(ctx)
	})
}

// The chosen client is queued, and gone when the masters hand the lock on, or before it learns
// of that.
func TestReal_Transfer_to_a_client_that_dies_is_decided_by_the_queue(t *testing.T) {
	t.Parallel()
	for how, dies := range map[string]func([]*faultproxy.Proxy){
		"gone": cutOff,
		"hung": func(links []*faultproxy.Proxy) {
			for _, l := range links {
				l.Cut()
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			addrs, proxies := masters.behindProxies(t)
			r := startRace(t, masters, addrs, redlock.WithTTL(5*second))
			dies(proxies)

			r.transfers(t)

			lease := arrival(t, "ann leads", r.ann)
			if len(r.bob) > 0 {
				t.Error("bob leads, too")
			}
			unlocks(t, lease)
		})
	}
}

// The chosen client asks again before it learns that the masters have handed it the lock, and the
// one that stood before it has asked, too. It keeps the lock for a third of its time: for ever, a
// vote that is split would stay so.
func TestReal_L73_the_chosen_client_leads_though_all_who_wait_ask_again(t *testing.T) {
	t.Parallel()
	const stay, earlier, later = 1500 * time.Millisecond, 1893456000000001, 1893456000000002
	q := wire.QueueOf("", "boss")
	ask := func(who string, n, ticket int64) *wire.Command {
		return wire.Ask("boss", q, fmt.Sprintf("%s/abcdefghijklmnop/1:%d", who, n), ticket, stay)
	}
	for when, wait := range map[string]func(*redistest.Server){
		"bob":                          func(*redistest.Server) {},
		"ann after the time":           func(*redistest.Server) { time.Sleep(stay / 2) },
		"ann as the clock is set back": func(s *redistest.Server) { s.StepClock(-time.Hour) },
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := startMasters(t, 1, redistest.Faketime())[0]
			subscribes(t, s, "ann", "bob")
			const leader = "boss/abcdefghijklmnop/1:0"
			do(t, s, "SET", "boss", leader, "PX", "60000")
			runAt(t, s, ask("ann", 1, earlier))
			runAt(t, s, ask("bob", 1, later))
			runAt(t, s, wire.FencedRelease("boss", q, leader, stay, 0).HandTo("bob/abcdefghijklmnop/1"))
			wait(s)

			runAt(t, s, ask("ann", 2, earlier))
			runAt(t, s, ask("bob", 2, later))

			if got := fmt.Sprintf("%s", do(t, s, "GET", "boss")); !strings.HasPrefix(got, when[:3]+"/") {
				t.Errorf("%s has the lock, want %s", got, when[:3])
			}
		})
	}
}

// A waiter has been given the lock, and sends its ask once more, because messages may have been missed.
// When the keys of its lease have ended, the next one is given the lock, not this one again.
func TestReal_L75_an_ask_that_was_granted_does_not_queue_again(t *testing.T) {
	t.Parallel()
	const stay = 600 * time.Millisecond
	s, q := startMasters(t, 1)[0], wire.QueueOf("", "lock")
	subscribes(t, s, "ann", "bob")
	ask := func(who string, ticket int64) any {
		return runAt(t, s, wire.Ask("lock", q, who+"/abcdefghijklmnop/1:1", ticket, stay))
	}
	const holder = "eve/abcdefghijklmnop/1:0"
	do(t, s, "SET", "lock", holder, "PX", "60000")
	ask("ann", 1)
	runAt(t, s, wire.Release("lock", q, holder, stay))
	time.Sleep(stay / 2)
	if got := ask("ann", 1); got != "OK" {
		t.Fatalf("ann sends its ask once more, and is answered %v", got)
	}
	eventually(t, "the lease ends", func() bool { return do(t, s, "EXISTS", "lock") == int64(0) })

	ask("bob", 2)

	if got := fmt.Sprintf("%s", do(t, s, "GET", "lock")); !strings.HasPrefix(got, "bob/") {
		t.Errorf("%s has the lock, want bob", got)
	}
}

// subscribes listens to a master for what waiters of these clients are granted.
func subscribes(t *testing.T, s *redistest.Server, clients ...string) {
	t.Helper()
	listener, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	for _, c := range clients {
		if _, err := listener.Do("SUBSCRIBE", wire.WaitChannel("", c+"/abcdefghijklmnop")); err != nil {
			t.Fatal(err)
		}
	}
}
