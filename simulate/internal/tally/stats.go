// Package tally counts what happened in schedules, and which promises broke.
package tally

import (
	"math"
	"math/bits"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Stats counts what happened in one schedule or in many.
type Stats struct {
	Schedules    int
	Simulated    time.Duration
	Events       uint64
	Calls        int // of Lock
	Acquisitions int
	NoQuorum     int // calls that ended without a quorum of masters
	Renewals     int
	Losses       int // leases that ended against their owner's will
	Writes       int
	Faults       map[plan.Kind]int
	// Violations counts the schedules with at least one violation of a kind,
	// Unsafe those with any.
	Violations map[ViolationKind]int
	Unsafe     int
	Waits      Histogram // of the calls that got the lock

	Made, Failed map[KindCheck]int // see KindChecks

	InLine int // waiters already queued when calls for a fair lock began

	HeldUp, Unknown, Redelivered, Quarantined, RanLate, Broken, Repaired, Adopted, Stopped, Closed, AttemptsFailed, CrashedHolding, Stops int
}

func New() *Stats {
	return &Stats{Faults: map[plan.Kind]int{}, Violations: map[ViolationKind]int{}, Made: map[KindCheck]int{}, Failed: map[KindCheck]int{}}
}

// Add adds the counts of o.
func (s *Stats) Add(o *Stats) {
	s.Schedules += o.Schedules
	s.Simulated += o.Simulated
	s.Events += o.Events
	s.Calls += o.Calls
	s.Acquisitions += o.Acquisitions
	s.NoQuorum += o.NoQuorum
	s.Renewals += o.Renewals
	s.Losses += o.Losses
	s.Writes += o.Writes
	s.Unsafe += o.Unsafe
	for k, n := range o.Faults {
		s.Faults[k] += n
	}
	for k, n := range o.Violations {
		s.Violations[k] += n
	}
	s.AddKindChecks(o.KindChecks())
	s.Waits.add(&o.Waits)
	s.InLine += o.InLine
	mine, theirs := s.Counters(), o.Counters()
	for i := range mine {
		*mine[i].N += *theirs[i].N
	}
}

// Count is a named number.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Sometimes returns what must happen now and then if the faults bite at all. A
// zero among them, over many schedules, says that something is not tried.
func (s *Stats) Sometimes() []Count {
	var list []Count
	for _, c := range s.Counters() {
		list = append(list, Count{c.Name, *c.N})
	}
	return append(list, Count{"a lease was renewed", s.Renewals}, Count{"a lease was lost", s.Losses},
		Count{"a call found no quorum", s.NoQuorum})
}

type counter struct {
	Name string
	N    *int
}

func (s *Stats) Counters() []counter {
	return []counter{
		{"a message was held up by a cut", &s.HeldUp},
		{"a connection broke", &s.Broken},
		{"a command had an unknown outcome", &s.Unknown},
		{"a command ran after its connection was closed", &s.RanLate},
		{"a release was delivered late", &s.Redelivered},
		{"a quarantined master was not asked", &s.Quarantined},
		{"a master got its key back", &s.Repaired},
		{"a lease was adopted", &s.Adopted},
		{"work was stopped at the end of its lease", &s.Stopped},
		{"a client closed", &s.Closed},
		{"an attempt failed", &s.AttemptsFailed},
		{"a holder crashed", &s.CrashedHolding},
		{"code was stopped in the middle", &s.Stops},
	}
}

// Availability is the share of calls that did not fail for want of a quorum.
func (s *Stats) Availability() float64 {
	if s.Calls == 0 {
		return math.NaN()
	}
	return 1 - float64(s.NoQuorum)/float64(s.Calls)
}

// Interval returns the bounds between which the share of n cases in total lies,
// with a confidence of 95% (Wilson's score interval).
func Interval(n, total int) (lo, hi float64) {
	if total == 0 {
		return 0, 1
	}
	const z = 1.959964
	t, p := float64(total), float64(n)/float64(total)
	middle := (p + z*z/(2*t)) / (1 + z*z/t)
	half := z / (1 + z*z/t) * math.Sqrt(p*(1-p)/t+z*z/(4*t*t))
	if n > 0 {
		lo = max(0, middle-half)
	}
	if n == total {
		return lo, 1
	}
	return lo, min(1, middle+half)
}

// Histogram counts durations in buckets of a sixteenth of their magnitude.
type Histogram struct {
	buckets [64 * 16]int32
	n       int
}

func (h *Histogram) Record(d time.Duration) {
	h.n++
	h.buckets[bucketOf(max(0, d))]++
}

func bucketOf(d time.Duration) int {
	v := uint64(d)
	if v < 16 {
		return int(v)
	}
	exp := bits.Len64(v) - 5
	return (exp+1)*16 + int(v>>exp) - 16
}

// Counts returns the buckets that are not empty.
func (h *Histogram) Counts() map[int]int32 {
	counts := map[int]int32{}
	for i, n := range h.buckets {
		if n > 0 {
			counts[i] = n
		}
	}
	return counts
}

// Restore is the reverse of counts.
func (h *Histogram) Restore(counts map[int]int32) {
	for i, n := range counts {
		if i >= 0 && i < len(h.buckets) {
			h.buckets[i] = n
			h.n += int(n)
		}
	}
}

func (h *Histogram) add(o *Histogram) {
	if o.n == 0 {
		return
	}
	h.n += o.n
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// Quantile returns the smallest duration that at least a share q of all does not exceed, to
// within a sixteenth; zero for an empty histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	left := int(math.Ceil(q * float64(h.n)))
	for i, n := range h.buckets {
		left -= int(n)
		if left <= 0 && h.n > 0 {
			if i < 16 {
				return time.Duration(i)
			}
			exp := i/16 - 1
			return time.Duration(uint64(i%16+17)<<exp - 1)
		}
	}
	return 0
}
