package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// announceLead is how long before the end of a validity its loss is announced,
// at TTLs of a second and more. A process that stands still for most of this time
// cannot be in time.
const announceLead = 20 * time.Millisecond

// lateLosses finds losses that were certainly announced after the validity had ended,
// by a process that was running.
func (h *History) lateLosses() (findings []Finding) {
	for _, s := range h.Spans {
		late := s.Unsaid - s.Until
		if s.Lost == "" || late <= 0 || h.stalled(s.Process, s.Until-announceLead, s.LostAt) >= announceLead/2 {
			continue
		}
		findings = append(findings, Finding{
			Check: LateLoss, At: s.LostAt, Lock: s.Lock,
			Text: fmt.Sprintf("%s (%s) at %s, at least %v after the end of its validity", s.Lease, s.Lost, h.at(s.LostAt), late),
		})
	}
	return findings
}

// stalled returns for how long a process did not run within a time.
// Several may have noted the same.
func (h *History) stalled(process string, from, to time.Duration) (sum time.Duration) {
	stalls := slices.Clone(h.stalls[process])
	slices.SortFunc(stalls, func(a, b stallSpan) int { return cmp.Compare(a.from, b.from) })
	for _, s := range stalls {
		sum += max(0, min(s.to, to)-max(s.from, from))
		from = max(from, s.to)
	}
	return sum
}

// Lateness counts the losses that were announced, and the losses that were late
// because their process stood still.
func (h *History) Lateness() (losses, excused int) {
	for _, s := range h.Spans {
		if s.Lost == "" {
			continue
		}
		losses++
		if s.LostAt > s.Until {
			excused++
		}
	}
	return losses, excused - len(h.lateLosses())
}
