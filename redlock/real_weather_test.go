package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/redlock"
)

// The simulator runs the coordinator one step at a time, so what two threads do
// to each other it cannot see. Here six clients fight for two locks while every
// link is slow, stuck or reset at random for about a node timeout, so that votes
// come early, late and not at all, between any two instructions; in make unruly
// there are also more threads than processors. No two hold a lock, and once all
// is released and the weather is fine, no master stores anything (L3).
func TestReal_L3_nothing_is_left_behind_unruly_links(t *testing.T) {
	t.Parallel()
	const (
		each    = 40
		timeout = 5 * time.Millisecond
	)
	ms := startMasters(t, 5)
	addrs, proxies := ms.behindProxies(t)
	limited, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	names := []string{"north", "south"}
	sections := map[string]*section{"north": {}, "south": {}}
	var clients sync.WaitGroup
	for range 6 {
		c := dial(t, addrs, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(timeout))
		clients.Go(func() {
			for range each {
				name := names[rand.N(len(names))]
				err := c.Mutex(name).Do(limited, func(context.Context) error { return sections[name].enter() })
				// The release is on its way all the same.
				if err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
					t.Error(err)
					return
				}
			}
		})
	}
	stop := weather(proxies, timeout)

	clients.Wait()
	stop()

	if got := sections["north"].count.Load() + sections["south"].count.Load(); got != 6*each {
		t.Errorf("the counters are %d after %d updates", got, 6*each)
	}
	for _, name := range names {
		ms.mustBeFreeSoon(t, name)
	}
}

// weather changes links at random until it is stopped, and leaves them healed.
func weather(proxies []*faultproxy.Proxy, timeout time.Duration) (stop func()) {
	over := make(chan struct{})
	var ended sync.WaitGroup
	for _, p := range proxies {
		ended.Go(func() {
			defer p.Heal()
			for {
				p.Heal()
				switch percent := rand.N(100); {
				case percent < 1: // reconnecting takes longer and longer
					p.Reset()
				case percent < 6:
					p.Cut(faultproxy.Direction(rand.N(2)))
				case percent < 26:
					p.Delay(faultproxy.Direction(rand.N(2)), rand.N(2*timeout))
				}
				select {
				case <-over:
					return
				case <-time.After(rand.N(4 * timeout)):
				}
			}
		})
	}
	return func() {
		close(over)
		ended.Wait()
	}
}
