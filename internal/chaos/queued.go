package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// queued is fair and fenced at once: tickets and tokens come from the same question.
// Its holders never look at their lease.
var queued = &Workload{
	Name:      "queued",
	Callers:   1,
	Locks:     []string{"queued"},
	Capacity:  1,
	Simulated: simulate.FairFencedLock,
	Turn: func(ctx context.Context, c *Caller) error {
		name := c.anyLock()
		h := c.Lock(ctx, c.client.Mutex(name, append(c.lockOptions(), redlock.Fair(), redlock.Fenced())...))
		if h == nil {
			return nil
		}
		defer h.leave()
		return h.work(ctx, c.upTo(c.ttl/8), name)
	},
	Check: (*History).misfenced,
	Tell:  (*Report).order,
}

// early is by how much later somebody came who is told of when served first. Who was
// queued when cannot be seen from outside, and nobody promises an order of those that
// come at the same time.
const early = time.Second

// order tells how often a fair lock was had by somebody who came well behind another
// one that still waited. During the faults that may be: a waiter whose process stands
// still, or who is cut off from a majority, loses its place, and is passed by many.
func (r *Report) order(w *Workload) string {
	var passed, all, passedInCalm, allInCalm int
	for _, lock := range w.Locks {
		spans := r.History.of(lock)
		inCalm := slices.DeleteFunc(slices.Clone(spans), func(s *Span) bool { return s.Since < r.Healed+r.Config.recovery() })
		passed, all = passed+len(outOfTurn(spans)), all+len(spans)
		passedInCalm, allInCalm = passedInCalm+len(outOfTurn(inCalm)), allInCalm+len(inCalm)
	}
	return fmt.Sprintf("%d of %d passed one that had waited %v longer; in the calm %d of %d", passed, all, early, passedInCalm, allInCalm)
}

// outOfTurn returns the spans that began before one that had been wanted long before
// them.
func outOfTurn(spans []*Span) (passed []*Span) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b *Span) int { return cmp.Compare(b.From, a.From) })
	var longest *Span // that waited, of those that were served later
	for _, s := range spans {
		if longest != nil && s.Since-longest.Since >= early {
			passed = append(passed, s)
		}
		if longest == nil || s.Since < longest.Since {
			longest = s
		}
	}
	return passed
}
