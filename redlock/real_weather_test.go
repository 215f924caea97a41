package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// The simulator runs the coordinator one step at a time, so what two threads do
// to each other it cannot see. Here three clients with four callers each fight
// for two locks while every link is slow, stuck or reset at random for about a
// node timeout, so that votes come early, late and not at all, between any two
// instructions; in make unruly there are also more threads than processors. No
// two hold a lock, and once all is released and the weather is fine, no master
// stores anything (L3).
//
// Not parallel: beside the other tests, round trips take longer than the node timeout.
func TestReal_L3_nothing_is_left_behind_unruly_links(t *testing.T) {
	const (
		clients, callers = 3, 4
		each             = 20
		timeout          = 5 * time.Millisecond
	)
	ms := startMasters(t, 5)
	limited, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	names := []string{"north", "south"}
	sections := map[string]*section{"north": newSection(t), "south": newSection(t)}
	var all sync.WaitGroup
	var links []*faultproxy.Proxy
	for range clients {
		addrs, proxies := ms.behindProxies(t) // each client's own
		links = append(links, proxies...)
		c := dial(t, addrs, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(timeout))
		fight := func() {
			for range each {
				name := names[rand.N(len(names))]
				err := redlock.Do(limited, c.Mutex(name), func(context.Context) error { return sections[name].enter() })
				// The release is on its way all the same.
				if err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
					t.Error(err)
					return
				}
			}
		}
		for range callers {
			all.Go(fight)
		}
	}
	// A link that is reset often takes ever longer to reconnect.
	stop := weather(links, forecast{stay: 4 * timeout, reset: 1, cut: 5, slow: 20, delay: 2 * timeout})

	all.Wait()
	stop()

	if got := sections["north"].count(t) + sections["south"].count(t); got != clients*callers*each {
		t.Errorf("the counters are %d after %d updates", got, clients*callers*each)
	}
	for _, name := range names {
		ms.mustBeFreeSoon(t, name)
	}
}

// No two leases are valid at once, also when they cannot be renewed because a
// quorum of links is stuck for longer than a TTL, and are lost or taken over.
func TestReal_S31_no_two_leases_are_valid_behind_unruly_links(t *testing.T) {
	const (
		clients = 4
		each    = 12
		ttl     = 60 * time.Millisecond
	)
	ms := startMasters(t, 5)
	limited, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	var held holders
	var all sync.WaitGroup
	var links []*faultproxy.Proxy
	for range clients {
		addrs, proxies := ms.behindProxies(t) // each client's own
		links = append(links, proxies...)
		c := dial(t, addrs, redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl/10))
		all.Go(func() {
			for range each {
				lease, err := c.Mutex("orders").Lock(limited)
				if err != nil {
					t.Error(err)
					return
				}
				held.add(lease)
				select {
				case <-lease.Done():
					held.lost.Add(1)
				case <-time.After(rand.N(4 * ttl)):
				}
				held.remove(lease)
				lease.Unlock(ctx) // or what is left of it
			}
		})
	}
	stopReferee := held.watch(t)
	stopWeather := weather(links, forecast{stay: 3 * ttl, reset: 1, cut: 40, slow: 20, delay: ttl / 10})

	all.Wait()
	stopWeather()
	stopReferee()

	t.Logf("%d of %d leases were lost", held.lost.Load(), clients*each)
	if held.lost.Load() == 0 {
		t.Error("no lease was lost: the weather was too fine to tell")
	}
	ms.mustBeFreeSoon(t, "orders")
}

// holders are the leases that somebody relies on.
type holders struct {
	mu     sync.Mutex
	leases []*redlock.Lease
	lost   atomic.Int64
}

func (h *holders) add(l *redlock.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, l)
}

func (h *holders) remove(l *redlock.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = slices.DeleteFunc(h.leases, func(other *redlock.Lease) bool { return other == l })
}

// watch looks for two valid leases until it is stopped. A lease that is valid
// before and after another was seen valid was so at that instant, however late
// this goroutine runs.
func (h *holders) watch(t *testing.T) (stop func()) {
	return inBackground(func() time.Duration {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, a := range h.leases {
			for _, b := range h.leases[i+1:] {
				if a.Valid() && b.Valid() && a.Valid() {
					t.Errorf("valid at once: %s and %s", a.Value(), b.Value())
				}
			}
		}
		return 100 * time.Microsecond
	})
}

// forecast is what the weather does to each link, anew after at most stay.
type forecast struct {
	stay             time.Duration
	reset, cut, slow int // in how many of a hundred cases
	delay            time.Duration
}

// weather changes every link at random until it is stopped, and leaves them
// healed.
func weather(links []*faultproxy.Proxy, f forecast) (stop func()) {
	var stops []func()
	for _, p := range links {
		stops = append(stops, inBackground(func() time.Duration {
			p.Heal()
			either := faultproxy.Direction(rand.N(2))
			switch percent := rand.N(100); {
			case percent < f.reset:
				p.Reset()
			case percent < f.reset+f.cut:
				p.Cut(either)
			case percent < f.reset+f.cut+f.slow:
				p.Delay(either, rand.N(f.delay))
			}
			return rand.N(f.stay)
		}))
	}
	return func() {
		for i, stop := range stops {
			stop()
			links[i].Heal()
		}
	}
}

// inBackground calls f again and again, each time after the pause that it asks
// for, until it is stopped.
func inBackground(f func() (pause time.Duration)) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-time.After(f()):
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
