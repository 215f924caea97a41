package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// early is how much later a caller must have come to count as served out of turn. The
// journals do not show when a caller was queued, and callers that come at the same time
// are promised no order.
const early = time.Second

// order counts the callers that got a fair lock before another which had waited much
// longer. Faults can cause that. A waiter loses its place while its process
// stands still or while it is cut off from a majority, and many pass it.
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

// outOfTurn returns the spans that began before another lease that had been wanted
// for much longer.
func outOfTurn(spans []*Span) (passed []*Span) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b *Span) int { return cmp.Compare(b.From, a.From) })
	var longest *Span // of the waiters that were served later
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
