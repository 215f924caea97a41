package work

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// arriving is the workload of a Latch that opens after the given number of arrivals. No count
// exceeds the number of arrivals that were sent, and no caller is let through before the given
// number was sent. Each count has all arrivals that were confirmed before, and no count goes
// back, as long as enough masters remember: enough since the beginning (Remembers), or all but
// a minority since all of them knew the arrivals.
func arriving(open int) func(p *promises.Caller, c *redlock.Client) {
	a := &arrivals{sent: map[string]bool{}}
	return func(p *promises.Caller, c *redlock.Client) {
		latch, dice := c.Latch("jobs", open), p.Client.Dice
		for !p.Scene.Healed {
			ctx, cancel := p.Clock().WithTimeout(context.Background(), dice.Spread(time.Millisecond, 2*time.Second))
			switch dice.Below(5) {
			case 0, 1:
				a.arrive(p, ctx, latch, strconv.Itoa(dice.Below(40))) // some of which have arrived already
			case 2, 3:
				a.count(p, ctx, latch)
			case 4:
				if latch.Wait(ctx) == nil {
					p.Check(tally.LetThroughInTime, len(a.sent) >= open, "%s is let through after %d of %d arrivals", p.Name(), len(a.sent), open)
				}
			}
			cancel()
			p.Sleep(context.Background(), dice.Spread(100*time.Microsecond, 500*time.Millisecond))
		}
		a.openAtLast(p, latch, open)
	}
}

// arrivals are what the clients of one schedule know of a latch.
type arrivals struct {
	sent map[string]bool
	ever known // from the beginning on
	now  known // in this epoch

	// An epoch begins when all masters know the arrivals, and lasts until fewer than a quorum have
	// kept their memory since all masters last knew them. The number is odd within an epoch.
	epoch  int
	lapses []int // of each master, when all last knew the arrivals
}

// known are the arrivals that no count may lack.
type known struct {
	confirmed map[string]bool
	highest   int // of all counts
}

func (k *known) confirm(id string) {
	if k.confirmed == nil {
		k.confirmed = map[string]bool{}
	}
	k.confirmed[id] = true
}

func (a *arrivals) arrive(p *promises.Caller, ctx context.Context, latch *redlock.Latch, id string) (ok bool) {
	epoch := a.look(p)
	a.sent[id] = true
	p.Scene.Stats.Calls++
	if latch.Arrive(ctx, id) != nil {
		return false
	}
	p.Scene.Stats.Acquisitions++
	a.ever.confirm(id)
	if a.look(p) == epoch && within(epoch) {
		a.now.confirm(id)
	}
	return true
}

func (a *arrivals) count(p *promises.Caller, ctx context.Context, latch *redlock.Latch) {
	epoch := a.look(p)
	everConfirmed, everHighest := len(a.ever.confirmed), a.ever.highest
	confirmed, highest := len(a.now.confirmed), a.now.highest
	n, err := latch.Count(ctx)
	if err != nil {
		return
	}
	p.Check(tally.CountsOnlySent, n <= len(a.sent), "%s counts %d of %d arrivals", p.Name(), n, len(a.sent))
	if p.Scene.Remembers() {
		p.Check(tally.CountsAll, n >= everConfirmed && n >= everHighest,
			"%s counts %d, when %d were confirmed and %d counted", p.Name(), n, everConfirmed, everHighest)
	}
	a.ever.highest = max(a.ever.highest, n)
	if a.look(p) != epoch || !within(epoch) {
		return
	}
	p.Check(tally.CountsAll, n >= confirmed && n >= highest,
		"%s counts %d, when %d were confirmed and %d counted since all masters knew who had arrived", p.Name(), n, confirmed, highest)
	a.now.highest = max(a.now.highest, n)
}

func within(epoch int) bool { return epoch%2 == 1 }

// look returns the epoch that it is now.
func (a *arrivals) look(p *promises.Caller) int {
	masters, forgot, whole := p.Scene.Masters, 0, true
	for i, m := range masters {
		if within(a.epoch) && m.Lapses != a.lapses[i] {
			forgot++
		}
		whole = whole && !m.Host.Down && m.Keys.Memory(fleet.MarkerKey) != m.Stale && m.Keys.Whole(latchKeys)
	}
	if forgot > len(masters)-quorum.Size(len(masters)) {
		a.epoch++
	}
	if !whole {
		return a.epoch
	}
	if !within(a.epoch) {
		a.epoch++
		a.now = known{}
	}
	a.lapses = a.lapses[:0]
	for _, m := range masters {
		a.lapses = append(a.lapses, m.Lapses)
	}
	return a.epoch
}

// latchKeys are the keys in which the masters keep the arrivals.
var latchKeys = wire.LatchOf("", "jobs", "").Read().Keys

// openAtLast has the latch open when all is well again.
func (a *arrivals) openAtLast(p *promises.Caller, latch *redlock.Latch, open int) {
	for i := range open {
		id := "last " + strconv.Itoa(i)
		for !a.arrive(p, context.Background(), latch, id) {
			p.Sleep(context.Background(), 100*time.Millisecond)
		}
	}
	err := latch.Wait(context.Background())
	p.Check(tally.OpensAtLast, err == nil, "%s: %v", p.Name(), err)
}
