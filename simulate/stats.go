package simulate

import (
	"math"
	"math/bits"
	"time"
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
	Faults       map[Kind]int
	// Violations counts the schedules with at least one violation of a kind,
	// Unsafe those with any.
	Violations map[ViolationKind]int
	Unsafe     int
	Waits      Histogram // of the calls that got the lock

	made, failed map[KindCheck]int // see KindChecks

	inLine int // how often somebody was queued for a fair lock when another call for it began

	heldUp, unknown, redelivered, quarantined, ranLate, broken, repaired, adopted, closed, attemptsFailed, crashedHolding, stops int
}

func newStats() *Stats {
	return &Stats{Faults: map[Kind]int{}, Violations: map[ViolationKind]int{}, made: map[KindCheck]int{}, failed: map[KindCheck]int{}}
}

// add adds the counts of o.
func (s *Stats) add(o *Stats) {
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
	s.addKindChecks(o.KindChecks())
	s.Waits.add(&o.Waits)
	s.inLine += o.inLine
	mine, theirs := s.sometimes(), o.sometimes()
	for i := range mine {
		*mine[i].n += *theirs[i].n
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
	for _, c := range s.sometimes() {
		list = append(list, Count{c.name, *c.n})
	}
	return append(list, Count{"a lease was renewed", s.Renewals}, Count{"a lease was lost", s.Losses},
		Count{"a call found no quorum", s.NoQuorum})
}

type counter struct {
	name string
	n    *int
}

func (s *Stats) sometimes() []counter {
	return []counter{
		{"a message was held up by a cut", &s.heldUp},
		{"a connection broke", &s.broken},
		{"a command had an unknown outcome", &s.unknown},
		{"a command ran after its connection was closed", &s.ranLate},
		{"a release was delivered late", &s.redelivered},
		{"a quarantined master was not asked", &s.quarantined},
		{"a master got its key back", &s.repaired},
		{"a lease was adopted", &s.adopted},
		{"a client closed", &s.closed},
		{"an attempt failed", &s.attemptsFailed},
		{"a holder crashed", &s.crashedHolding},
		{"code was stopped in the middle", &s.stops},
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

func (h *Histogram) record(d time.Duration) {
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

// counts returns the buckets that are not empty.
func (h *Histogram) counts() map[int]int32 {
	counts := map[int]int32{}
	for i, n := range h.buckets {
		if n > 0 {
			counts[i] = n
		}
	}
	return counts
}

// restore is the reverse of counts.
func (h *Histogram) restore(counts map[int]int32) {
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

// Quantile returns the smallest duration that at least a share q of all does
// not exceed, to within a sixteenth; zero if there are none.
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
