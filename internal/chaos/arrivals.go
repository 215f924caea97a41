package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// This file judges latches. Whatever is forgotten, no count exceeds the reports,
// and no waiter is let through too early. Arrivals are not lost as long as at most a
// minority of the masters loses its memory before a count has told them again.
// The counts do not show when that was. So a client asks the masters themselves now
// and then. An epoch begins when it finds every set whole. It ends when a majority of
// the masters has lost its memory and no other such look came in between.

// latchEvent is an event of a latch, and whose it is.
type latchEvent struct {
	Event
	process string
}

// latchHistory is what happened to one latch, in order.
type latchHistory struct {
	report                               *Report
	name                                 string
	arrived, tallied, opened, out, whole []latchEvent
	reported                             map[string]time.Duration // by name: when first
	losses                               []Done                   // of memory
	known                                map[time.Duration][]arrival
}

// arrival is a confirmed arrival: when it was first reported, and when that was
// certain.
type arrival struct{ reported, confirmed time.Duration }

func (r *Report) latchHistory(name string) *latchHistory {
	l := &latchHistory{report: r, name: name, reported: map[string]time.Duration{}, known: map[time.Duration][]arrival{}}
	l.losses = slices.DeleteFunc(slices.Clone(r.Faults), func(d Done) bool { return !r.forgets(d) })
	events := slices.Clone(r.History.latches[name])
	slices.SortStableFunc(events, func(a, b latchEvent) int { return cmp.Compare(a.At, b.At) })
	of := map[EventKind]*[]latchEvent{Arrived: &l.arrived, Tallied: &l.tallied, Opened: &l.opened, Waited: &l.out, Whole: &l.whole}
	for _, e := range events {
		if into := of[e.Kind]; into != nil {
			*into = append(*into, e)
		} else if _, known := l.reported[e.Text]; !known {
			l.reported[e.Text] = e.At
		}
	}
	slices.SortFunc(l.whole, func(a, b latchEvent) int { return cmp.Compare(a.Since, b.Since) })
	return l
}

// misarrived judges every latch.
func (r *Report) misarrived() (findings []Finding) {
	for _, name := range slices.Sorted(maps.Keys(r.History.latches)) {
		l := r.latchHistory(name)
		findings = append(findings, l.early()...)
		findings = append(findings, l.lost()...)
		findings = append(findings, l.shut()...)
	}
	return findings
}

func (l *latchHistory) finding(check Check, at time.Duration, text string, args ...any) Finding {
	return Finding{Check: check, At: at, Lock: l.name, Text: fmt.Sprintf(text, args...)}
}

// early finds counts of more than had been reported, and waiters that were let through
// before there were enough.
func (l *latchHistory) early() (findings []Finding) {
	for _, e := range l.tallied {
		if n := l.reportedBy(e.At); e.Count > n {
			findings = append(findings, l.finding(EarlyLatch, e.At, "%d were counted, and %d had been reported", e.Count, n))
		}
	}
	for _, e := range l.opened {
		if n := l.reportedBy(e.At); n < latchOpens {
			findings = append(findings, l.finding(EarlyLatch, e.At, "somebody was let through, and %d of %d had been reported", n, latchOpens))
		}
	}
	return findings
}

func (l *latchHistory) reportedBy(at time.Duration) (n int) {
	for _, first := range l.reported {
		if first <= at {
			n++
		}
	}
	return n
}

// lost finds counts that lack an arrival which was confirmed before, or which an
// earlier count had.
func (l *latchHistory) lost() (findings []Finding) {
	for _, e := range l.tallied {
		from, ok := l.epoch(e.Event)
		if !ok {
			continue
		}
		if least, why := l.least(e.Event, from); e.Count < least {
			findings = append(findings, l.finding(LostArrival, e.At, "%d were counted from %s on, but %s", e.Count, l.report.History.at(e.Since), why))
		}
	}
	return findings
}

// least is the lowest count that can be right within an epoch. It is the number of
// arrivals that were confirmed since the epoch began, or what an earlier count had
// seen and the arrivals confirmed after it.
func (l *latchHistory) least(e Event, from time.Duration) (least int, why string) {
	least = l.confirmed(from, 0, e.Since)
	why = fmt.Sprintf("%d had been confirmed since %s", least, l.report.History.at(from))
	for _, earlier := range l.tallied {
		if earlier.Since < from || earlier.At > e.Since {
			continue
		}
		news := l.confirmed(from, earlier.At, e.Since)
		if n := earlier.Count + news; n > least {
			least = n
			why = fmt.Sprintf("%d had been counted at %s, and %d confirmed that came later", earlier.Count, l.report.History.at(earlier.At), news)
		}
	}
	return least, why
}

// confirmed returns how many were first reported after an instant, and confirmed by
// another one since the epoch began.
func (l *latchHistory) confirmed(epoch, after, by time.Duration) (n int) {
	for _, a := range l.arrivals(epoch) {
		if a.reported >= after && a.confirmed <= by {
			n++
		}
	}
	return n
}

// arrivals returns all that were reported and confirmed since the epoch began. An
// arrival that was lost before can be among them: it was reported again.
func (l *latchHistory) arrivals(epoch time.Duration) []arrival {
	if all, ok := l.known[epoch]; ok {
		return all
	}
	first := map[string]arrival{}
	for _, e := range l.arrived {
		if a, ok := first[e.Text]; e.Since >= epoch && (!ok || e.At < a.confirmed) {
			first[e.Text] = arrival{l.reported[e.Text], e.At}
		}
	}
	l.known[epoch] = slices.Collect(maps.Values(first))
	return l.known[epoch]
}

// epoch returns when the epoch began within which a count was made, if there is one.
func (l *latchHistory) epoch(e Event) (from time.Duration, ok bool) {
	looked := time.Duration(0) // at the last look, if there is an epoch
	for _, w := range l.whole {
		if w.At > e.Since {
			continue
		}
		if !ok || l.forgetful(looked, w.At) {
			from = w.At
		}
		looked, ok = w.Since, true
	}
	return from, ok && !l.forgetful(looked, e.At)
}

// forgetful reports whether a majority of the masters lost its memory within a time.
func (l *latchHistory) forgetful(from, to time.Duration) bool {
	r, forgot := l.report, map[int]bool{}
	for _, d := range l.losses {
		if r.Start+d.From <= to && r.Start+d.Until >= from {
			forgot[d.Target] = true
		}
	}
	return len(forgot) > (r.Masters-1)/2
}

// forgets reports whether a master may have lost something by a fault. A killed
// master keeps its synced writes, and only some sync every write.
func (c *Config) forgets(d Done) bool {
	switch d.Kind.Name {
	case "kill", "flush":
		return true
	case "restart", "revive", "backward":
		return !c.durable(d.Target) || d.Target%5 == 4
	}
	return false
}

// shut finds waiters that were not let through, although everything worked again and
// all had arrived.
func (l *latchHistory) shut() (findings []Finding) {
	// Who cannot count at first looks again after five seconds.
	const patience = 7 * time.Second
	r := l.report
	open := r.Dismissed // since when it certainly is
	for _, e := range l.tallied {
		if e.Since >= r.Healed && e.Count >= latchOpens {
			open = min(open, e.At)
		}
	}
	for _, e := range l.out {
		from, to := max(e.Since, open, r.Healed+2*longTTL), min(e.At, r.Dismissed)
		if to-from-r.History.stalled(e.process, from, to) >= patience {
			findings = append(findings, l.finding(Progress, to, "it was open since %s, and nobody was let through for %v", r.History.at(open), to-from))
		}
	}
	return findings
}

// latches tells how much there was to judge.
func (r *Report) latches(*Workload) string {
	var open, arrived, tallied, judged, waits int
	for name := range r.History.latches {
		l := r.latchHistory(name)
		arrived, tallied, waits = arrived+len(l.arrived), tallied+len(l.tallied), waits+len(l.opened)
		if len(l.opened) > 0 {
			open++
		}
		for _, e := range l.tallied {
			if _, ok := l.epoch(e.Event); ok {
				judged++
			}
		}
	}
	return fmt.Sprintf("%d arrivals, %d counts, %d of them judged for losses, %d let through\n       %d of %d latches open",
		arrived, tallied, judged, waits, open, len(r.History.latches))
}
