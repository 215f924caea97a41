package redlock_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages one wrong clock (S47, S48): of three masters client 1 holds A and C and
// is cut off; client 2 reaches B and C; one clock goes wrong. Nobody may hold the lock
// beside client 1.

// clockCase is one wrong clock.
type clockCase struct {
	name string
	// step and rate are of C's clock, once client 1 holds the lock.
	step time.Duration
	rate float64
	late time.Duration // the answers to the handshake of client 2
	new  bool          // client 2 comes when the clock is wrong
	back time.Duration // after which it is right again, before a new client 2 comes; zero: it is not
	// behind is how far C's clock is, by which C restarts without its data and is marked anew; then it is
	// right, and a new client 2 comes, which reaches all.
	behind time.Duration
	slow   float64 // the rate of the clock of client 1, which is new; zero: it is right
}

// oneWrongClock is the measured table.
var oneWrongClock = []clockCase{
	{name: "ahead by 10 ms", step: 10 * time.Millisecond},
	{name: "ahead by 25 ms", step: 25 * time.Millisecond},
	{name: "ahead by 0.9 s", step: 900 * time.Millisecond},
	{name: "ahead by 1.5 s", step: 1500 * time.Millisecond},
	{name: "slewed by 8.3 %", rate: 1.083},
	{name: "slewed by 5 %", rate: 1.05},
	{name: "slewed by 0.05 %", rate: 1.0005},
	{name: "late handshake, ahead by 3.5 s", step: 3500 * time.Millisecond, late: 1500 * time.Millisecond},
	{name: "late handshake of a new client, ahead by 3.5 s", step: 3500 * time.Millisecond, late: 1500 * time.Millisecond, new: true},
	{name: "the clock of client 1 runs at 0.95", slow: 0.95},
	{name: "the clock of client 1 runs at 0.8", slow: 0.8},
}

// clockTTLs are those of the table. The long ones take a minute or two: make clocks.
func clockTTLs() []time.Duration {
	if os.Getenv("REDLOCK_LONG") != "" {
		return []time.Duration{500 * time.Millisecond, 2 * second, 10 * second, 30 * second}
	}
	return []time.Duration{500 * time.Millisecond, 2 * second}
}

func TestReal_S47_one_wrong_clock_makes_no_two_holders(t *testing.T) {
	t.Parallel()
	few := make(chan struct{}, 3*len(clockTTLs())) // at a time: each has three servers, and waits
	for _, ttl := range clockTTLs() {
		for _, c := range oneWrongClock {
			t.Run(fmt.Sprintf("%s, TTL %v", c.name, ttl), func(t *testing.T) {
				t.Parallel()
				few <- struct{}{}
				defer func() { <-few }()
				c.run(t, ttl)
			})
		}
	}
}

// S72: another client has seen that the clock was ahead.
func TestReal_S72_a_newcomer_is_told_of_a_clock_that_was_ahead(t *testing.T) {
	t.Parallel()
	clockCase{step: 10 * second, new: true, back: 3 * second}.run(t, 10*second)
}

// S74: by its clock C's marker is older than it is.
func TestReal_S74_a_marker_that_was_written_by_a_clock_that_was_behind_proves_nothing(t *testing.T) {
	t.Parallel()
	for range 3 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			clockCase{behind: 30 * second, new: true}.run(t, 6*second)
		})
	}
}

func (c clockCase) run(t *testing.T, ttl time.Duration) {
	s := newComers(t, ttl)
	ms, opts := s.ms, append(s.opts, inUse)
	own := opts
	if c.slow != 0 {
		own = append(slices.Clone(opts), redlock.WithClock(&pacedClock{clock.New(), time.Now(), c.slow}))
	}
	var first, second *redlock.Mutex
	var clients []*redlock.Client
	begins := func() {
		clients = append(clients, dial(t, s.addrs[0], own...))
		first = clients[len(clients)-1].Mutex("orders", redlock.NoRenew())
	}
	if c.slow == 0 {
		begins()
	}
	comes := func() {
		for _, p := range s.proxies[1] {
			p.Delay(faultproxy.Replies, c.late)
			time.AfterFunc(c.late/2, func() { p.Delay(faultproxy.Replies, 0) }) // of what comes later
		}
		clients = append(clients, dial(t, s.addrs[1], opts...))
		second = clients[len(clients)-1].Mutex("orders")
	}
	if c.back > 0 || c.behind > 0 { // another client sees what the clock does
		clients = append(clients, dial(t, s.addrs[1], opts...))
		s.written(t)
	}
	if !c.new {
		comes()
	}
	if c.late == 0 {
		heartbeat(t, clients...)
	}

	if c.slow != 0 {
		begins() // it locks before it knows how its own clock runs
	}
	var held *redlock.Lease
	eventually(t, "client 1 has the lock, or knows that its clock is slow", func() bool {
		var err error
		held, err = first.TryLock(ctx)
		return err == nil || c.slow != 0 && errors.Is(err, guard.ErrQuarantined)
	})
	if held == nil {
		return
	}
	s.cutOff()
	if c.rate != 0 {
		ms[2].SetClockRate(c.rate)
	}
	ms[2].StepClock(c.step)
	if c.back > 0 {
		heartbeat(t, clients[1]) // the other client, which may be slow on a busy machine
		time.Sleep(c.back)
		ms[2].StepClock(-c.step)
	}
	if c.behind > 0 {
		ms[2].Kill()
		ms[2].StepClock(-c.behind)
		ms[2].RestartEmpty()
		eventually(t, "it is marked", func() bool {
			marker, _ := redis.String(ms[2].Do("GET", "redlock:marker"))
			return marker != ""
		})
		ms[2].StepClock(c.behind)
	}
	switch {
	case c.behind > 0: // what is written of B's clock is of A's, and of C's before it restarted
		second = ms.client(t, opts...).Mutex("orders")
	case c.new:
		comes()
	}
	contend(t, held, second)
}

// inUse has a client never rest.
var inUse = seam.Option(seam.Seams{Rest: time.Hour}).(redlock.Option)

// heartbeat waits until the clients have looked once more at the masters that they reach.
func heartbeat(t *testing.T, clients ...*redlock.Client) {
	t.Helper()
	before := make([][]node.Status, len(clients))
	for i, c := range clients {
		before[i] = c.Nodes()
	}
	for i, c := range clients {
		eventually(t, "a heartbeat at each master", func() bool {
			for k, now := range c.Nodes() {
				if now.State == node.StateConnected && (now.Commands == before[i][k].Commands || now.InFlight > 0) {
					return false
				}
			}
			return true
		})
	}
}

// contend has the second client try until it has the lock, or the first one's lease has ended.
func contend(t *testing.T, held *redlock.Lease, second *redlock.Mutex) {
	t.Helper()
	for held.Valid() {
		lease, err := second.TryLock(ctx)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if held.Valid() && lease.Valid() {
			t.Errorf("two holders for %v", time.Until(held.Until()))
		}
		return
	}
}

// pacedClock runs at a rate of its own, the wall clock and the monotonic one alike.
type pacedClock struct {
	clock.Clock
	origin time.Time
	rate   float64
}

func (c *pacedClock) Now() time.Time {
	return c.origin.Add(time.Duration(c.rate * float64(time.Since(c.origin))))
}

func (c *pacedClock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.Clock.AfterFunc(time.Duration(float64(d)/c.rate), f)
}
