package simulate

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// arriving is the workload of a Latch for so many arrivals. No count exceeds what was
// sent, and nobody is let through before so many have. As long as the masters remember
// enough, each count has all arrivals that were confirmed before, and none goes back.
func arriving(open int) func(p *Process, c *redlock.Client) {
	a := &arrivals{sent: map[string]bool{}, confirmed: map[string]bool{}}
	return func(p *Process, c *redlock.Client) {
		latch, dice := c.Latch("jobs", open), p.client.dice
		for !p.Over() {
			ctx, cancel := p.Clock().WithTimeout(context.Background(), dice.spread(time.Millisecond, 2*time.Second))
			switch dice.below(5) {
			case 0, 1:
				a.arrive(p, ctx, latch, strconv.Itoa(dice.below(40))) // some of which have arrived already
			case 2, 3:
				a.count(p, ctx, latch)
			case 4:
				if err := latch.Wait(ctx); err == nil && len(a.sent) < open {
					p.Fail("%s is let through after %d of %d arrivals", p.name, len(a.sent), open)
				}
			}
			cancel()
			p.Sleep(context.Background(), dice.spread(100*time.Microsecond, 500*time.Millisecond))
		}
		a.openAtLast(p, latch, open)
	}
}

// arrivals are what the clients of one schedule know of a latch.
type arrivals struct {
	sent, confirmed map[string]bool
	highest         int // of all counts
}

func (a *arrivals) arrive(p *Process, ctx context.Context, latch *redlock.Latch, id string) {
	a.sent[id] = true
	p.trial.stats.Calls++
	if latch.Arrive(ctx, id) == nil {
		a.confirmed[id] = true
		p.trial.stats.Acquisitions++
	}
}

func (a *arrivals) count(p *Process, ctx context.Context, latch *redlock.Latch) {
	confirmed, highest := len(a.confirmed), a.highest
	n, err := latch.Count(ctx)
	if err != nil {
		return
	}
	if n > len(a.sent) {
		p.Fail("%s counts %d of %d arrivals", p.name, n, len(a.sent))
	}
	if p.trial.remembers() && (n < confirmed || n < highest) {
		p.Fail("%s counts %d, when %d were confirmed and %d counted", p.name, n, confirmed, highest)
	}
	a.highest = max(a.highest, n)
}

// openAtLast has the latch open when all is well again.
func (a *arrivals) openAtLast(p *Process, latch *redlock.Latch, open int) {
	for i := range open {
		id := "last " + strconv.Itoa(i)
		for a.arrive(p, context.Background(), latch, id); !a.confirmed[id]; a.arrive(p, context.Background(), latch, id) {
			p.Sleep(context.Background(), 100*time.Millisecond)
		}
	}
	if err := latch.Wait(context.Background()); err != nil {
		p.Fail("%s: %v", p.name, err)
	}
}

// remembers reports whether so few masters have forgotten anything that no arrival can
// be lost. One may have been away all the time: that is as if it had forgotten.
func (t *trial) remembers() bool {
	forgot := 0
	for _, m := range t.masters {
		forgot += min(m.lapses, 1)
	}
	return forgot <= max(0, (len(t.masters)-1)/2-1)
}
