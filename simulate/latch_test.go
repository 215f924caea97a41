package simulate

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// arrivals are what the clients of one schedule know of a latch.
type arrivals struct {
	sent, confirmed map[string]bool
	highest         int // of all counts
}

// perTrial returns what the processes of one schedule share.
func perTrial[T any](all *sync.Map, p *Process, begin func() *T) *T {
	one, _ := all.LoadOrStore(p.trial, begin())
	return one.(*T)
}

// latchWorkload has clients arrive, count and wait. No count exceeds what was sent,
// and nobody is let through before so many have. As long as no master has forgotten
// anything, each count has all arrivals that were confirmed before, and none goes back.
func latchWorkload(open int) func(p *Process, c *redlock.Client) {
	var all sync.Map
	return func(p *Process, c *redlock.Client) {
		a := perTrial(&all, p, func() *arrivals { return &arrivals{sent: map[string]bool{}, confirmed: map[string]bool{}} })
		latch, dice := c.Latch("jobs", open), p.client.dice
		for !p.Over() {
			ctx, cancel := p.Clock().WithTimeout(context.Background(), dice.spread(time.Millisecond, 2*time.Second))
			switch dice.below(5) {
			case 0, 1:
				id := strconv.Itoa(dice.below(40)) // some of which have arrived already
				a.sent[id] = true
				if latch.Arrive(ctx, id) == nil {
					a.confirmed[id] = true
				}
			case 2, 3:
				confirmed, highest := len(a.confirmed), a.highest
				n, err := latch.Count(ctx)
				switch remembered := p.trial.lapses() == 0; {
				case err != nil:
				case n > len(a.sent):
					p.Fail("%s counts %d of %d arrivals", p.name, n, len(a.sent))
				case remembered && (n < confirmed || n < highest):
					p.Fail("%s counts %d, when %d were confirmed and %d counted", p.name, n, confirmed, highest)
				}
				if err == nil {
					a.highest = max(a.highest, n)
				}
			case 4:
				if err := latch.Wait(ctx); err == nil && len(a.sent) < open {
					p.Fail("%s is let through after %d of %d arrivals", p.name, len(a.sent), open)
				}
			}
			cancel()
			p.Sleep(context.Background(), dice.spread(100*time.Microsecond, 500*time.Millisecond))
		}
		// All is well again: the latch opens.
		for i := range open {
			for latch.Arrive(context.Background(), "last "+strconv.Itoa(i)) != nil {
				p.Sleep(context.Background(), 100*time.Millisecond)
			}
		}
		if err := latch.Wait(context.Background()); err != nil {
			p.Fail("%s: %v", p.name, err)
		}
	}
}

// notForgetful are the faults after which every master remembers what it was told.
var notForgetful = []Kind{Pause, Slow, Reset, CutOut, CutIn, Partition, Errors, ClientCrash, ClientPause, ClientSuspend}

func TestALatchCountsExactly(t *testing.T) {
	for name, faults := range map[string]Mix{"masters remember": Only(notForgetful...), "every fault": Assumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range []int{3, 4, 5} {
				r, err := Run(Config{Nodes: nodes, Seeds: 60 / share(), Duration: 20 * time.Second, Faults: faults}, latchWorkload(12))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Failures {
					t.Errorf("%d masters, seed %d: %v", nodes, f.Seed, f.Violations)
				}
			}
		})
	}
}
