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

// Because says of each kind of fault how Redlock as it is commonly written comes
// to grief by it.
var because = map[plan.Kind]string{
	plan.ClientSuspend: suspended, plan.ClientRate: runsSlow,
	plan.Restart: forgot, plan.RestartEmpty: forgot, plan.RestartSnapshot: forgot, plan.RestartPartial: forgot, plan.Failover: forgot, plan.Follow: forgot,
	plan.Step: early, plan.Rate: early,
	plan.Flush: dropped, plan.Evict: dropped, plan.Delete: dropped,
	plan.Pause: late, plan.Slow: late,
}

// why says how a naive lock came to break a promise in a schedule that was
// reduced to what matters: by the faults that are left, if those break it, or by what is
// wrong with it in any case.
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
