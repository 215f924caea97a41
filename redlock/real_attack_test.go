package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// Every kind of lock is fought for at the same masters, while connections are killed,
// scripts forgotten and a minority hangs, callers change their minds and clients are
// closed. Nobody has what somebody else has, nobody waits without end, no Unlock
// finds a lease lost, and nothing is left.
func TestReal_every_kind_while_everything_is_disturbed(t *testing.T) {
	masters := startMasters(t, 5)
	court := &referee{t: t, tokens: map[string]uint64{}}
	const each = 10
	var fights, visits sync.WaitGroup
	for _, g := range games() {
		for range 2 {
			c := masters.client(t)
			for range 2 {
				fights.Go(func() {
					for range each {
						court.play(c, g)
					}
				})
			}
		}
	}
	stopTrouble, over := trouble(masters), make(chan struct{})
	visits.Go(func() {
		for !isClosed(over) {
			court.visit(t, masters)
		}
	})

	fights.Wait()
	close(over)
	visits.Wait()
	stopTrouble()

	masters.mustKeepNothing(t)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// trouble disturbs the masters until it is stopped.
func trouble(ms realMasters) (stop func()) {
	return inBackground(func() time.Duration {
		s := ms[rand.N(len(ms))]
		switch rand.N(5) {
		case 0:
			s.Do("CLIENT", "KILL", "TYPE", "normal")
		case 1:
			s.Do("CLIENT", "KILL", "TYPE", "pubsub")
		case 2:
			s.Do("SCRIPT", "FLUSH")
		case 3:
			s.Do("CLIENT", "PAUSE", 1+rand.N(100), "ALL")
		case 4:
			few := ms[rand.N(4):][:1+rand.N(2)]
			onSome(len(few), (*redistest.Server).Stop)(few)
			time.Sleep(rand.N(200 * time.Millisecond))
			onSome(len(few), (*redistest.Server).Continue)(few)
		}
		return rand.N(50 * time.Millisecond)
	})
}

// game is one lock that is fought for.
type game func(context.Context, *redlock.Client) (stake, error)

// stake is what somebody holds: so much of each of the names, of which there is no
// more than whole.
type stake struct {
	lease         *redlock.Lease
	names         []string
	weight, whole int
}

func games() []game {
	mutex := func(name string, opts ...redlock.MutexOption) game {
		return func(ctx context.Context, c *redlock.Client) (stake, error) {
			lease, err := c.Mutex(name, opts...).Lock(ctx)
			return stake{lease, []string{name}, 1, 1}, err
		}
	}
	multi := func(names []string, opts ...redlock.MultiOption) game {
		return func(ctx context.Context, c *redlock.Client) (stake, error) {
			without := rand.N(len(names))
			some := slices.Delete(slices.Clone(names), without, without+1)
			lease, err := c.Multi(some, opts...).Lock(ctx)
			return stake{lease, some, 1, 1}, err
		}
	}
	return []game{
		mutex("fenced", redlock.Fenced()), mutex("fair", redlock.Fair()), mutex("both", redlock.Fair(), redlock.Fenced()),
		multi([]string{"a", "b", "c"}), multi([]string{"d", "e", "f"}, redlock.Fenced()),
		func(ctx context.Context, c *redlock.Client) (stake, error) {
			if rand.N(2) == 0 {
				lease, err := c.RWMutex("rw").Lock(ctx)
				return stake{lease, []string{"rw"}, 100, 100}, err
			}
			lease, err := c.RWMutex("rw").RLock(ctx)
			return stake{lease, []string{"rw"}, 1, 100}, err
		},
		func(ctx context.Context, c *redlock.Client) (stake, error) {
			n := 1 + rand.N(3)
			lease, err := c.Semaphore("sem", 3).Acquire(ctx, n)
			return stake{lease, []string{"sem"}, n, 3}, err
		},
		func(ctx context.Context, c *redlock.Client) (stake, error) {
			lease, err := c.Election("boss").Campaign(ctx, "here")
			return stake{lease, []string{"boss"}, 1, 1}, err
		},
	}
}

// referee knows who holds what.
type referee struct {
	t      *testing.T
	mu     sync.Mutex
	inside []stake
	tokens map[string]uint64
}

// play takes a lock, perhaps in vain, and gives it back.
func (r *referee) play(c *redlock.Client, g game) {
	patient := rand.N(4) > 0
	within, cancel := context.WithTimeout(ctx, rand.N(50*time.Millisecond))
	if patient {
		within, cancel = context.WithTimeout(ctx, 2*patience)
	}
	defer cancel()
	s, err := g(within, c)
	switch {
	case errors.Is(err, redlock.ErrClosed), err != nil && !patient:
		return
	case err != nil:
		r.t.Errorf("whoever waits must get it: %v", err)
		return
	}
	r.admit(s)
	time.Sleep(rand.N(5 * time.Millisecond))
	r.mu.Lock()
	r.inside = slices.DeleteFunc(r.inside, func(o stake) bool { return o.lease == s.lease })
	r.mu.Unlock()
	switch err := s.lease.Unlock(ctx); {
	case err == nil, errors.Is(err, redlock.ErrClosed), errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrExpired):
	default:
		r.t.Errorf("%s: %v", s.lease.Value(), err)
	}
}

// admit counts who holds the same beside s. A lease that is valid before and after
// another was seen valid was so at that instant.
func (r *referee) admit(s stake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range s.names {
		var beside []stake
		for _, o := range r.inside {
			if slices.Contains(o.names, name) && o.lease.Valid() {
				beside = append(beside, o)
			}
		}
		valid, sum := s.lease.Valid(), s.weight
		for _, o := range beside {
			if o.lease.Valid() {
				sum += o.weight
			}
		}
		if valid && sum > s.whole {
			r.t.Errorf("%d of %d of %q are held, by %s and %d others", sum, s.whole, name, s.lease.Value(), len(beside))
		}
		if token := s.lease.Token(); valid && token > 0 {
			if token <= r.tokens[name] {
				r.t.Errorf("token %d of %q after %d", token, name, r.tokens[name])
			}
			r.tokens[name] = token
		}
	}
	r.inside = append(r.inside, s)
}

// visit is a client that is closed while its callers are at it.
func (r *referee) visit(t *testing.T, ms realMasters) {
	c := ms.client(t)
	var callers sync.WaitGroup
	for _, g := range games() {
		callers.Go(func() { r.play(c, g) })
	}
	time.Sleep(rand.N(100 * time.Millisecond))
	// A master to which the connection breaks again and again may not confirm in the time that
	// Close waits. What stays there ends with its TTL.
	if err := c.Close(); err != nil && !errors.Is(err, redlock.ErrUndelivered) {
		t.Errorf("Close: %v", err)
	}
	callers.Wait()
}
