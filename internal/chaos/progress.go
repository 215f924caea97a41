package chaos

import (
	"fmt"
	"time"
)

// progress checks that every caller that wanted a lock after the faults had it
// in time, and that every client was served.
func (r *Report) progress() (findings []Finding) {
	for _, w := range r.Workloads {
		for _, lock := range w.Locks {
			findings = append(findings, r.stuck(lock)...)
		}
	}
	for client := range r.Clients {
		if !r.served(client) {
			findings = append(findings, Finding{
				Check: Progress, At: r.Closed, Text: fmt.Sprintf("client %d got no lock after the last fault", client),
			})
		}
	}
	return findings
}

// stuck finds waits in vain for a free lock, when everything had
// time to recover. While a process stands still although nothing is done to it,
// the machine is too busy, and masters stand still, too: that time does not count.
func (r *Report) stuck(lock string) (findings []Finding) {
	const patience = 2 * time.Second
	for _, w := range r.History.waits {
		// Before, it may take its time; after, they were told to end.
		from, to := max(w.from, r.Healed+r.Config.recovery()), min(w.to, r.Dismissed)
		if w.lock != lock || to-from-r.History.stalled(w.process, from, to) < patience || r.heldWithin(lock, from, to) {
			continue
		}
		findings = append(findings, Finding{
			Check: Progress, At: to, Lock: lock,
			Text: fmt.Sprintf("wanted since %s, and nobody had it for %v", r.History.at(w.from), to-from),
		})
	}
	return findings
}

func (r *Report) heldWithin(lock string, from, to time.Duration) bool {
	for _, s := range r.History.of(lock) {
		if s.From < to && s.To > from {
			return true
		}
	}
	return false
}

// recovery returns how long after the last fault a client had the lock.
func (r *Report) recovery(lock string) time.Duration {
	for _, s := range r.History.of(lock) {
		if s.To >= r.Healed {
			return max(0, s.From-r.Healed)
		}
	}
	return r.Closed - r.Healed
}

func (r *Report) served(client int) bool {
	for _, s := range r.History.Spans {
		if s.Client == client && s.From >= r.Healed {
			return true
		}
	}
	return false
}

// drought returns the longest time within the faults in which no client had the
// lock.
func (r *Report) drought(lock string) (longest time.Duration) {
	last := r.Start
	for _, s := range r.History.of(lock) {
		if s.From > r.Healed {
			break
		}
		longest = max(longest, s.From-last)
		last = max(last, s.To)
	}
	return max(longest, r.Healed-max(last, r.Start))
}
