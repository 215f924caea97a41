package simulate

import (
	"slices"
	"strings"
)

const (
	suspended = "Its monotonic clock stood still while it was suspended, so it trusts a lease that has ended."
	runsSlow  = "Its clock runs slow, so it trusts a lease that has ended."
	forgot    = "A master came back without the lock, and was asked again as if it remembered."
	early     = "A master's clock went ahead, so the key ended there before the holder's time was up."
	dropped   = "A master dropped the key while the lock was held, and granted it again."
	late      = "An answer came late, and the time that it took was not counted."
)

// because says of each kind of fault how Redlock as it is commonly written comes
// to grief by it.
var because = map[Kind]string{
	ClientSuspend: suspended, ClientRate: runsSlow,
	Restart: forgot, RestartEmpty: forgot, RestartSnapshot: forgot, RestartPartial: forgot, Failover: forgot, Follow: forgot,
	Step: early, Rate: early,
	Flush: dropped, Evict: dropped, Delete: dropped,
	Pause: late, Slow: late,
}

// why says how a naive lock came to break a promise in a schedule that was
// reduced to what matters: by the faults that are left, or by what is wrong with
// it in any case.
func (r *rung) why(s *Schedule, broken *Violation) string {
	if r != rungR0 || broken == nil || broken.Kind != Overlap || len(s.Faults) == 0 {
		return r.flaw
	}
	var reasons []string
	for _, f := range s.Faults {
		reason := because[f.Kind]
		if reason == "" {
			return r.flaw
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 2 {
		return r.flaw
	}
	return strings.Join(reasons, " ")
}
