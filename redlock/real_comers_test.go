package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file stages clients that come where nobody was, or with a wrong clock of their own. Client 1
// reaches A and C, locks, and is cut off. Client 2 reaches B and C.

type comers struct {
	ms      realMasters
	opts    []redlock.Option
	addrs   [2][]string
	proxies [2][]*faultproxy.Proxy
}

func newComers(t *testing.T, ttl time.Duration, servers ...redistest.Option) *comers {
	s := &comers{ms: startMasters(t, 3, append(servers, redistest.Faketime())...)}
	declareNew(t, redistest.URLs(s.ms))
	s.opts = []redlock.Option{redlock.WithTTL(ttl), redlock.WithRestartGuard(ttl), redlock.WithNodeTimeout(ttl * 2 / 5)}
	for i, unreached := range []int{1, 0} {
		s.addrs[i], s.proxies[i] = s.ms.behindProxies(t)
		s.proxies[i][unreached].Refuse()
	}
	return s
}

// written waits until it is written of C's clock how far it is ahead of B's.
func (s *comers) written(t *testing.T) {
	t.Helper()
	eventually(t, "it is written of C's clock by B's", func() bool {
		marker, _ := redis.String(s.ms[1].Do("GET", "redlock:marker"))
		return strings.Contains(s.said(t), strings.Fields(marker + " -")[0])
	})
}

// said is what is written of C's clock.
func (s *comers) said(t *testing.T) string {
	t.Helper()
	said, err := redis.String(s.ms[2].Do("GET", "redlock:clock"))
	if err != nil && err != redis.ErrNil {
		t.Fatal(err)
	}
	return said
}

// lock has client 1 lock, and cuts it off.
func (s *comers) lock(t *testing.T, first *redlock.Mutex) (held *redlock.Lease) {
	t.Helper()
	eventually(t, "client 1 has the lock", func() bool {
		var err error
		held, err = first.TryLock(ctx)
		return err == nil
	})
	s.cutOff()
	return held
}

// cutOff cuts client 1 off from the masters that it reaches.
func (s *comers) cutOff() {
	for _, p := range []*faultproxy.Proxy{s.proxies[0][0], s.proxies[0][2]} {
		p.Refuse()
		p.Reset()
	}
}

// Nobody was connected for a day, so that what is written of C's clock leaves half a minute open. Client
// 1 is near, or 5 ms away. Then C's clock is set forward.
func TestReal_S75_a_clock_that_was_set_is_noticed_where_nobody_was_connected_for_a_day(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			t.Parallel()
			for range 5 {
				if s, held := afterADay(t, away); held != nil {
					s.ms[2].StepClock(3 * second)
					contend(t, held, dial(t, s.addrs[1], s.opts...).Mutex("orders"))
					return
				}
			}
			t.Log("the machine was too busy: client 1 was 20 ms away, five times")
		})
	}
}

// afterADay has client 1 lock. It returns no lease if client 1 has written nothing of C's clock because
// it was too far away to know where that is, on a busy machine.
func afterADay(t *testing.T, away time.Duration) (s *comers, held *redlock.Lease) {
	s = newComers(t, 6*second)
	old := s.ms.client(t, s.opts...)
	s.written(t)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.ms {
		m.StepClock(24 * time.Hour)
	}
	for i := range s.proxies {
		for _, p := range s.proxies[i] {
			p.Delay(faultproxy.Replies, away)
		}
	}
	before := s.said(t)
	first := dial(t, s.addrs[0], s.opts...)
	held = s.lock(t, first.Mutex("orders", redlock.NoRenew()))
	if s.said(t) != before {
		return s, held
	}
	if far := first.Nodes()[0].RoundTrip + first.Nodes()[2].RoundTrip; far < 15*time.Millisecond {
		t.Errorf("client 1 wrote nothing of C's clock before it locked, and the round trips to A and C took %v together", far)
	}
	return s, nil
}

// Durable masters restart, all of them or those that client 2 reaches, and C's clock is set forward. Nobody
// is connected but client 2, which comes then.
func TestReal_S78_a_clock_that_was_set_is_noticed_after_durable_masters_have_restarted(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		for _, step := range []time.Duration{0, 900 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d restart, ahead by %v", 3-first, step), func(t *testing.T) {
				t.Parallel()
				s := newComers(t, 6*second, redistest.AOF())
				durable := func(addrs []string) *redlock.Client {
					return dial(t, addrs, append(s.opts, redlock.WithDurableNodes(addrs...))...)
				}
				old := durable(redistest.URLs(s.ms))
				s.written(t)
				if err := old.Close(); err != nil {
					t.Fatal(err)
				}
				held := s.lock(t, durable(s.addrs[0]).Mutex("orders", redlock.NoRenew()))
				for _, m := range s.ms[first:] {
					m.Restart()
				}
				s.ms[2].StepClock(step)
				second := durable(s.addrs[1]).Mutex("orders")
				if _, err := second.TryLock(ctx); step == 0 {
					mustBe(t, err, redlock.ErrTaken)
				}
				contend(t, held, second)
			})
		}
	}
}

// C restarts without its data. Client 2 counts the quarantine of C by its own clock, which runs fast.
func TestReal_S77_a_client_whose_clock_runs_fast_ends_no_quarantine(t *testing.T) {
	t.Parallel()
	const ttl = 10 * second
	for _, rate := range []float64{1.1, 1.3, 3} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("rate %v, there before: %v", rate, before), func(t *testing.T) {
				t.Parallel()
				s := newComers(t, ttl)
				comes := func() *redlock.Client {
					own := redlock.WithClock(&pacedClock{clock.New(), time.Now(), rate})
					return dial(t, s.addrs[1], append([]redlock.Option{own}, s.opts...)...)
				}
				first := dial(t, s.addrs[0], s.opts...)
				var second *redlock.Client
				there := []*redlock.Client{first}
				if before {
					second = comes()
					there = append(there, second)
				}
				heartbeat(t, there...)
				held := s.lock(t, first.Mutex("orders", redlock.NoRenew()))
				s.ms[2].RestartEmpty()
				if !before {
					second = comes()
				}
				contend(t, held, second.Mutex("orders"))
			})
		}
	}
}
