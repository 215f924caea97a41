package redlock_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// amnesia is S3 up to the restart: client 1 reaches only A, B and C and holds
// the lock there; D and E are free. Then C is killed and comes back empty.
// Client 2 reaches all five.
type amnesia struct {
	masters realMasters
	held    *redlock.Lease // of client 1
	second  *redlock.Mutex // of client 2
	log     *diary         // of client 2
	back    time.Time      // when C was killed
}

// newAmnesia does not let client 1 repair its lease: that is another promise.
func newAmnesia(t *testing.T, masters realMasters, opts ...redlock.Option) *amnesia {
	t.Helper()
	a := &amnesia{masters: masters, log: &diary{}}
	opts = append(opts, redlock.WithLogger(slog.New(a.log)))
	a.second = masters.client(t, opts...).Mutex("orders")
	addrs, proxies := masters.behindProxies(t)
	proxies[3].Refuse()
	proxies[4].Refuse()
	a.held = lock(t, dial(t, addrs, opts...).Mutex("orders", redlock.NoRenew()))
	masters[:3].mustHold(t, a.held)

	a.back = time.Now()
	masters[2].RestartEmpty()
	return a
}

// lockOrVotes is one attempt of client 2 in which C has voted.
func (a *amnesia) lockOrVotes(t *testing.T) (*redlock.Lease, []redlock.Vote) {
	t.Helper()
	for {
		lease, err := a.second.TryLock(ctx)
		if err == nil {
			return lease, nil
		}
		var failed *redlock.Error
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		if !errors.Is(failed.Votes[2].Err, node.ErrDown) && !errors.Is(failed.Votes[2].Err, node.ErrUnknown) {
			return nil, failed.Votes
		}
		if time.Since(a.back) > patience {
			t.Fatalf("the restarted master is not reached: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// This is what the guard is for: without it, S3 has two holders.
func TestReal_S3_without_the_guard_a_restart_lets_a_second_client_in(t *testing.T) {
	t.Parallel()
	a := newAmnesia(t, startMasters(t, 5), redlock.WithTTL(time.Minute), redlock.WithRestartGuard(0))

	lease, votes := a.lockOrVotes(t)

	if lease == nil || !lease.Valid() || !a.held.Valid() {
		t.Errorf("the defect does not show: votes %v", votes)
	}
}

func TestReal_S3_with_the_guard_the_restarted_master_does_not_vote(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	declareNew(t, redistest.URLs(ms))
	hour := []redlock.Option{redlock.WithTTL(time.Hour), redlock.WithRestartGuard(time.Hour)}
	a := newAmnesia(t, ms, hour...)

	lease, votes := a.lockOrVotes(t)

	if lease != nil {
		t.Fatalf("two holders: the first is valid: %v", a.held.Valid())
	}
	if !errors.Is(votes[2].Err, guard.ErrQuarantined) {
		t.Errorf("the restarted master votes %v", votes[2])
	}
	if votes[0].Vote != quorum.Refused || votes[1].Vote != quorum.Refused {
		t.Errorf("votes %v", votes)
	}
	if restarted := ms[2].Addr(); !a.log.said("WARN", "quarantined", restarted) { // whose marker is lost, or is client 1's by now
		t.Errorf("the log does not say that %s is quarantined: %q", restarted, a.log.lines)
	}
	newcomer := ms.client(t, hour...)
	_, err := newcomer.Mutex("orders").TryLock(ctx)
	mustBe(t, err, guard.ErrQuarantined) // has never seen the marker that was lost
}

// The lease of client 1 ends, and client 2 needs the restarted master.
func TestReal_S3_the_restarted_master_votes_when_the_guard_has_passed(t *testing.T) {
	t.Parallel()
	const ttl = 3 * second
	ms := startMasters(t, 5)
	declareNew(t, redistest.URLs(ms))
	a := newAmnesia(t, ms, redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl))
	ms[0].Kill()
	ms[1].Kill()

	next := lock(t, a.second)

	if passed := time.Since(a.back); passed < ttl {
		t.Errorf("the restarted master voted after %v", passed)
	}
	if a.held.Valid() {
		t.Error("two holders")
	}
	ms[2:].mustHold(t, next)
	eventually(t, "the log says that the quarantine is over", func() bool {
		return a.log.said("INFO", "out of quarantine", ms[2].Addr())
	})
}

// A durable master has its keys when it is back, and need not be kept out.
func TestReal_S3_durable_master_votes_at_once(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.AOF())
	addrs := redistest.URLs(ms)
	// An hour is longer than these servers run after the restart: only durable
	// masters can have a quorum then.
	declareNew(t, addrs)
	durable := []redlock.Option{redlock.WithRestartGuard(time.Hour), redlock.WithDurableNodes(addrs...)}
	lease := lock(t, dial(t, addrs, durable...).Mutex("orders", redlock.NoRenew(), redlock.TTL(time.Hour)))
	ms.mustHold(t, lease)

	for _, s := range ms {
		s.Restart()
	}

	other := dial(t, addrs, durable...)
	_, err := other.Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrTaken)
	lock(t, other.Mutex("something else"))

	_, err = dial(t, addrs, redlock.WithRestartGuard(time.Hour)).Mutex("more").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)
	mustBe(t, err, guard.ErrQuarantined)
}

// S24: FLUSHALL takes the marker with the keys. The heartbeat misses it, and
// nobody gets what a majority forgot until the lease has ended.
func TestReal_S24_flushed_masters_do_not_vote(t *testing.T) {
	t.Parallel()
	const ttl = 3 * second
	ms := startMasters(t, 3)
	addrs := redistest.URLs(ms)
	declareNew(t, addrs)
	log := &diary{}
	c := dial(t, addrs, redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl), redlock.WithLogger(slog.New(log)))
	lease := lock(t, c.Mutex("orders", redlock.NoRenew())) // a renewal may put the keys back
	flushed := time.Now()
	ms[:2].doAll(t, "FLUSHALL")

	eventually(t, "the heartbeats miss the markers", func() bool {
		return log.said("quarantined", ms[0].Addr(), "lost its marker") && log.said("quarantined", ms[1].Addr(), "lost its marker")
	})
	lock(t, c.Mutex("orders"))

	if passed := time.Since(flushed); passed < ttl {
		t.Errorf("masters that were flushed gave the lock on after %v", passed)
	}
	if lease.Valid() {
		t.Error("two holders")
	}
}

// L43: durable masters restart, and a client that is new looks before one that knows
// them. It leaves the markers as they are, but for the run: nobody is quarantined.
func TestReal_L43_a_new_client_that_looks_first_at_durable_masters_quarantines_nobody(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.AOF())
	urls := redistest.URLs(ms)
	declareNew(t, urls)
	addrs, proxies := ms.behindProxies(t)
	options := func(addrs []string) []redlock.Option {
		return []redlock.Option{redlock.WithRestartGuard(time.Hour), redlock.WithDurableNodes(addrs...)}
	}
	log := &diary{}
	known := dial(t, addrs, append(options(addrs), redlock.WithLogger(slog.New(log)))...)
	if err := lock(t, known.Mutex("orders")).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	for i, s := range ms {
		proxies[i].Refuse()
		proxies[i].Reset()
		s.Restart()
	}

	lock(t, dial(t, urls, options(urls)...).Mutex("something else"))
	for _, p := range proxies {
		p.Heal()
	}

	lock(t, known.Mutex("orders"))
	if log.said("quarantined") {
		t.Errorf("quarantined: %q", log.all())
	}
}
