package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// overlaps finds the instants at which more of a lock was held than there is.
// A span has only the certain part of a hold, so every finding did happen.
func (h *History) overlaps(lock string, capacity int) (findings []Finding) {
	type change struct {
		at    time.Duration
		begin bool
		span  *Span
	}
	var changes []change
	for _, s := range h.of(lock) {
		changes = append(changes, change{s.From, true, s}, change{s.To, false, s})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.begin == b.begin {
			return c
		}
		if a.begin { // an end goes first
			return 1
		}
		return -1
	})
	var holders []*Span
	held := 0
	for _, c := range changes {
		if !c.begin {
			if i := slices.Index(holders, c.span); i >= 0 {
				holders = slices.Delete(holders, i, i+1)
				held -= c.span.Weight
			}
			continue
		}
		if c.span.From >= c.span.To {
			continue // valid for an instant: before and after look alike
		}
		holders = append(holders, c.span)
		if held += c.span.Weight; held > capacity {
			findings = append(findings, Finding{Check: Overlap, At: c.at, Lock: lock, Text: h.describe(holders, held, capacity)})
		}
	}
	return findings
}

func (h *History) describe(holders []*Span, held, capacity int) string {
	parts := make([]string, len(holders))
	for i, s := range holders {
		parts[i] = fmt.Sprintf("%s from %s to %s", s.Lease, h.at(s.From), h.at(s.To))
	}
	return fmt.Sprintf("%d of %d held: %s", held, capacity, strings.Join(parts, "; "))
}
