package view

import (
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

const (
	suspended = "Its monotonic clock stood still while it was suspended, so it trusts a lease that has ended."
	runsSlow  = "Its clock runs slow, so it trusts a lease that has ended."
	forgot    = "A master came back without the lock, and was asked again as if it remembered."
	early     = "A master's clock went ahead, so the key ended there before the holder's time was up."
	dropped   = "A master dropped the key while the lock was held, and granted it again."
	late      = "An answer came late, and the time that it took was not counted."
)

// because says how each kind of fault breaks Redlock as commonly written.
var because = map[plan.Kind]string{
	plan.ClientSuspend: suspended, plan.ClientRate: runsSlow,
	plan.Restart: forgot, plan.RestartEmpty: forgot, plan.RestartSnapshot: forgot, plan.RestartPartial: forgot, plan.Failover: forgot, plan.Follow: forgot,
	plan.Step: early, plan.Rate: early,
	plan.Flush: dropped, plan.Evict: dropped, plan.Delete: dropped,
	plan.Pause: late, plan.Slow: late,
}

// why says how a naive lock broke a promise in a schedule that was shrunk: by the faults that
// are left, if they break it, or by the flaw that it has in any case.
func why(flaw string, byFaults bool, s *plan.Schedule, broken *tally.Violation) string {
	if !byFaults || broken.Kind != tally.Overlap || len(s.Faults) == 0 {
		return flaw
	}
	var reasons []string
	for _, f := range s.Faults {
		reason := because[f.Kind]
		if reason == "" {
			return flaw
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 2 {
		return flaw
	}
	return strings.Join(reasons, " ")
}

// Because has the timeline say why a naive lock with that flaw broke, if it did. byFaults
// says that faults broke it.
func (tl *Timeline) Because(flaw string, byFaults bool) {
	if tl.focus != nil {
		tl.why = why(flaw, byFaults, tl.Schedule, tl.focus)
	}
}
