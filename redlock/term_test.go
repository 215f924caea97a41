package redlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// twoClocks are the clocks of a machine, each set as a test likes.
type twoClocks struct {
	*clock.Mock
	mono, wall time.Duration
}

func (c *twoClocks) Now() time.Time           { return time.Unix(1, 0).Add(c.wall) }
func (c *twoClocks) Monotonic() time.Duration { return c.mono }

// held is a lease that is watched by these clocks.
func (c *twoClocks) held(ttl time.Duration) *Lease {
	o, _ := resolve(nil)
	client := &Client{opt: o, seams: seam.Seams{Budget: o.budget}, clock: c, watch: drift.NewStopwatch(c)}
	client.timers = drift.NewTimers(client.watch)
	l := &lock{client: client, opt: lockOptions{ttl: ttl, maxHold: forever}}
	return newLease(context.Background(), l, nil, "v", client.watch.Now())
}

// A lease whose masters are gone is asked again and again for less. It keeps only the
// terms that may be the first to end, or each look at it would walk all of them.
func TestExtend_to_less_that_fails_again_and_again_keeps_few_terms(t *testing.T) {
	for name, next := range map[string]func(n int) time.Duration{
		"the same":                 func(int) time.Duration { return 10 * time.Second },
		"what is left of 20 s":     func(n int) time.Duration { return 20*time.Second - time.Duration(n)*time.Millisecond },
		"more each time":           func(n int) time.Duration { return 10*time.Second + time.Duration(n)*time.Millisecond },
		"by turns more, then less": func(n int) time.Duration { return time.Duration(10+n%2) * time.Second },
	} {
		c := &twoClocks{Mock: clock.NewMock()}
		l := c.held(30 * time.Second)
		for n := range 10_000 {
			c.mono, c.wall = c.mono+time.Millisecond, c.wall+time.Millisecond
			if l.startRenewal(next(n)) == nil {
				break
			}
			l.renewal = nil // no quorum answers
		}
		if len(l.shorter) > 2 {
			t.Errorf("%s: %d terms", name, len(l.shorter))
		}
	}
}

// A client may stop between the start of a renewal and its first send, and learn meanwhile that
// an earlier renewal was lost.
func TestS66_a_renewal_that_was_started_before_another_is_lost_is_worth_no_more(t *testing.T) {
	c := &twoClocks{Mock: clock.NewMock()}
	l := c.held(time.Second)
	lost, next := &renewal{lease: l, ttl: 200 * time.Millisecond}, l.startRenewal(3*time.Second)

	lost.noteLost(quorum.Ballot{Vote: quorum.Failed, Reply: wire.Reply{Err: &wire.Error{Err: node.ErrUnknown}}})
	l.adopt(next)

	if left := l.left(l.now()); left > lost.ttl {
		t.Errorf("%v left, although a master may let the key end in %v", left, lost.ttl)
	}
}

// A term that is left out makes no lease last longer, however the clocks are set and
// however fast the masters' clocks run.
func TestS44_a_term_that_is_left_out_would_never_end_first(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	upTo := func(d time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(d))) }
	left := 0
	for range 5000 {
		c := &twoClocks{Mock: clock.NewMock()}
		l := c.held(30 * time.Second)
		all := []term{l.term}
		for range 5 {
			c.mono, c.wall = c.mono+upTo(2*time.Second), c.wall+upTo(4*time.Second)-time.Second
			x := l.startRenewal(time.Second + upTo(35*time.Second))
			l.renewal = nil
			if budget := l.lock.client.budget(x.ttl); budget < l.budget {
				all = append(all, term{x.since, budget})
			}
		}
		left += len(all) - 1 - len(l.shorter)
		for range 20 {
			c.mono, c.wall = c.mono+upTo(2*time.Second), c.wall+upTo(4*time.Second)-time.Second
			l.rate = 1 + float64(dice.IntN(3))*dice.Float64()
			at := l.now()
			want := slices.Min(func() (ends []time.Duration) {
				for _, t := range all {
					ends = append(ends, t.left(at, l.rate))
				}
				return ends
			}())
			if got := l.left(at); got != want {
				t.Fatalf("%v is left of %+v, which are %+v: want %v", got, l.shorter, all, want)
			}
		}
	}
	if left == 0 {
		t.Error("none is ever left out")
	}
}
