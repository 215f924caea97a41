package redlock_test

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
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
