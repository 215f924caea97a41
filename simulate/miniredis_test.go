package simulate_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// These are failures on the real transport, which the model leaves out: five
// miniredis servers over TCP, on a clock that only moves when told to.

// rig is five servers and the clock that they share with the clients.
type rig struct {
	t       *testing.T
	clock   *clock.Mock
	servers []*miniredis.Miniredis
}

const ttl = 10 * time.Second

func newRig(t *testing.T) *rig {
	r := &rig{t: t, clock: clock.NewMock()}
	r.clock.Set(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	for range 5 {
		s := miniredis.RunT(t)
		s.SetTime(r.clock.Now())
		r.servers = append(r.servers, s)
	}
	return r
}

func (r *rig) client(opts ...redlock.Option) *redlock.Client {
	r.t.Helper()
	var addrs []string
	for i, s := range r.servers {
		addrs = append(addrs, s.Addr())
		s.Set(wire.MarkerKey(""), guard.NewMaster("", r.clock.Now().Add(time.Duration(i)*time.Millisecond), 0, guard.GroupID{}).String())
	}
	opts = append([]redlock.Option{
		redlock.WithTTL(ttl), redlock.WithClock(r.clock), redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithClockGuard(0), // the servers' clocks are moved after ours, in steps
	}, opts...)
	c, err := redlock.Dial(context.Background(), addrs, opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.close(c) })
	r.answering(c, 5)
	return c
}

// close closes a client, and lets the time pass for which it waits for servers that are gone.
func (r *rig) close(c *redlock.Client) {
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	for len(closed) == 0 {
		r.clock.Add(50 * time.Millisecond)
	}
}

// pass lets time pass, in steps that let everybody keep up.
func (r *rig) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 50*time.Millisecond)
		d -= step
		r.clock.Add(step)
		for _, s := range r.servers {
			s.SetTime(r.clock.Now())
			s.FastForward(step)
		}
	}
}

// until lets time pass until it is so.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	for range 2000 {
		if so() {
			return
		}
		r.pass(50 * time.Millisecond)
	}
	r.t.Fatalf("never happened: %s", what)
}

// answering waits until that many masters answer a client.
func (r *rig) answering(c *redlock.Client, n int) {
	r.t.Helper()
	r.until("enough masters answer", func() bool {
		h, err := c.Inspect(context.Background(), "probe")
		if err != nil {
			return false
		}
		up := 0
		for _, v := range h.Nodes {
			if v.Err == nil {
				up++
			}
		}
		return up == n
	})
}

func (r *rig) down(i int) { r.servers[i].Close() }

func (r *rig) up(i int) {
	if err := r.servers[i].Restart(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) lock(c *redlock.Client) *redlock.Lease {
	r.t.Helper()
	lease, err := c.Mutex("name").TryLock(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return lease
}

// TestS31_a_cut_off_holder_is_told_before_its_validity_ends on real connections.
func TestS31_a_cut_off_holder_is_told_before_its_validity_ends(t *testing.T) {
	r := newRig(t)
	lease := r.lock(r.client())
	until := lease.Until()

	// When every master is gone.
	for i := range r.servers {
		r.down(i)
	}

	// Then the context ends, without the clock moving on, and says why.
	r.pass(until.Sub(r.clock.Now()))
	for real := 0; lease.Context().Err() == nil; real++ {
		if real > 5000 {
			t.Fatal("the validity is over and nobody was told")
		}
		r.clock.Add(0) // runs what is due, and takes a millisecond of real time
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, redlock.ErrExpired) {
		t.Errorf("cause %v, want %v", cause, redlock.ErrExpired)
	}
}

// forgotten is S24 and S3: client 1 holds A, B and C; C forgets; D and E, which
// client 1 could not reach, are back. It returns what client 2 gets.
func forgotten(t *testing.T, opts ...redlock.Option) (holder *redlock.Lease, err error) {
	r := newRig(t)
	one, two := r.client(opts...), r.client(opts...)
	r.down(3)
	r.down(4)
	r.answering(one, 3)
	lease, err := one.Mutex("name", redlock.NoRenew()).TryLock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.up(3)
	r.up(4)
	r.answering(two, 5)

	r.servers[2].FlushAll()
	r.pass(2 * time.Second) // a heartbeat looks
	if !lease.Valid() {
		t.Fatal("the holder's lease has ended already")
	}
	_, err = two.Mutex("name").TryLock(context.Background())
	return lease, err
}

func TestS24_a_master_that_forgot_may_not_grant(t *testing.T) {
	if _, err := forgotten(t); err == nil {
		t.Error("two clients hold the lock")
	}
}

func TestS24_without_the_guard_two_clients_hold_the_lock(t *testing.T) {
	lease, err := forgotten(t, redlock.WithRestartGuard(0))
	if err != nil || !lease.Valid() {
		t.Errorf("the attack does not work any more (second client: %v, first one valid: %v)", err, lease.Valid())
	}
}

// TestS17_a_renewal_repairs_masters_that_came_back on real connections.
func TestS17_a_renewal_repairs_masters_that_came_back(t *testing.T) {
	r := newRig(t)
	c := r.client()
	r.down(3)
	r.down(4)
	r.answering(c, 3)
	lease := r.lock(c)

	r.up(3)
	r.up(4)
	for _, i := range []int{3, 4} {
		r.until("the key is on a master that came back", func() bool {
			v, _ := r.servers[i].Get("name")
			return v == lease.Value()
		})
	}
	if !lease.Valid() {
		t.Error("the lease has ended")
	}
}

// TestL3_a_release_reaches_a_master_that_was_down on real connections.
func TestL3_a_release_reaches_a_master_that_was_down(t *testing.T) {
	r := newRig(t)
	c := r.client()
	lease := r.lock(c)
	r.until("every master has the key", func() bool { return r.servers[4].Exists("name") })
	r.down(4)
	if err := lease.Unlock(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !r.servers[4].Exists("name") {
		t.Fatal("the master that is down lost its key")
	}
	began := r.clock.Now()
	r.up(4)
	r.until("the release arrives", func() bool { return !r.servers[4].Exists("name") })
	if took := r.clock.Now().Sub(began); took > ttl/2 {
		t.Errorf("the key was deleted after %v, by its TTL rather than by the release", took)
	}
}
