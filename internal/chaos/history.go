package chaos

import (
	"fmt"
	"slices"
	"time"
)

// History is what all clients wrote down.
type History struct {
	dir       string
	workloads []*Workload
	start     time.Duration
	storage   *storage

	Spans    []*Span // of leases, by the begin of their certain validity
	Updates  map[string]*Update
	Failures map[string]int // by reason: locks that were not acquired
	waits    []wait         // for locks that were not acquired
	nests    []nest
	latches  map[string][]latchEvent // by the name of the latch
	Unlocks  map[string]int          // by what Unlock returned
	Refused  int                     // reads and writes of holders that had been overtaken
	byLease  map[string]*Span
	repeated []Finding
	broken   []Finding
	stalls   map[string][]stallSpan // by process
}

// Span is a lease between two instants at which it was valid.
type Span struct {
	Client         int
	Process        string
	Workload, Lock string
	Lease          string
	Weight         int
	Token          uint64        // zero: it has none
	Since          time.Duration // it was wanted
	From, To       time.Duration

	Lost   string        // why it was lost; empty: it was not
	LostAt time.Duration // when that was announced, at the latest
	Unsaid time.Duration // when it certainly was not
	Until  time.Duration // when its validity ended then
}

// wait is for a lock that was not acquired.
type wait struct {
	process, lock string
	from, to      time.Duration
}

type stallSpan struct{ from, to time.Duration }

// add takes in the journal of one process.
func (h *History) add(client int, process string, events []Event) {
	if h.byLease == nil {
		h.byLease, h.stalls = map[string]*Span{}, map[string][]stallSpan{}
		h.Updates, h.Failures, h.Unlocks = map[string]*Update{}, map[string]int{}, map[string]int{}
		h.latches = map[string][]latchEvent{}
	}
	for _, e := range events {
		s := h.byLease[e.Lease]
		switch e.Kind {
		case Held:
			if s != nil {
				text := fmt.Sprintf("%s was held by %s before", e.Lease, s.Process)
				h.repeated = append(h.repeated, Finding{Check: RepeatedValue, At: e.At, Lock: e.Lock, Text: text})
			}
			s = &Span{
				Client: client, Process: process, Workload: e.Workload, Lock: e.Lock,
				Lease: e.Lease, Weight: e.Weight, Token: e.Token, Since: e.Since, From: e.At, To: e.At,
			}
			h.byLease[e.Lease] = s
			h.Spans = append(h.Spans, s)
		case Stalled:
			h.stalls[process] = append(h.stalls[process], stallSpan{e.At, e.Until})
		case Failed:
			h.Failures[e.Text]++
			h.waits = append(h.waits, wait{process, e.Lock, e.Since, e.At})
		case Broken:
			h.broken = append(h.broken, Finding{Check: Progress, At: e.At, Text: process + ": " + e.Text})
		case Updated:
			h.Updates[e.Update.ID] = e.Update
		case Refused:
			h.Refused++
		case Unlocked:
			h.Unlocks[e.Text]++
		case Counted:
			h.nests = append(h.nests, nest{e.Lock, e.Lease, e.At, e.Depth, e.Count, e.Text})
		case Arriving, Arrived, Tallied, Opened, Waited, Whole:
			h.latches[e.Lock] = append(h.latches[e.Lock], latchEvent{e, process})
		}
		if s == nil {
			continue // it was lost before it could be seen valid
		}
		switch e.Kind {
		case Valid:
			s.To = max(s.To, e.At)
		case Left:
			s.To = max(s.To, e.Until)
		case Lost:
			s.Lost, s.LostAt, s.Unsaid, s.Until = e.Text, e.At, e.Since, e.Until
		}
	}
}

// of returns the spans of one lock, in order.
func (h *History) of(lock string) (spans []*Span) {
	for _, s := range h.Spans {
		if s.Lock == lock {
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b *Span) int { return int(a.From - b.From) })
	return spans
}

// Finding is something that must not be.
type Finding struct {
	Check Check
	At    time.Duration // by the machine's monotonic clock
	Lock  string
	Text  string
}

// Check is what a finding violates.
type Check string

const (
	Overlap       Check = "two holders"
	LostUpdate    Check = "lost update"
	FallingToken  Check = "token does not rise"
	NotAtomic     Check = "register not atomic"
	LateLoss      Check = "loss announced late"
	LeftKey       Check = "key left"
	Progress      Check = "no progress"
	RepeatedValue Check = "value used twice"
	Nesting       Check = "nested hold miscounted"
	EarlyLatch    Check = "latch open early"
	LostArrival   Check = "arrival lost"
)

// Checks are all of them, in the order of the report.
var Checks = []Check{Overlap, LostUpdate, FallingToken, NotAtomic, LateLoss, LeftKey, Progress, RepeatedValue, Nesting, EarlyLatch, LostArrival}

// check judges everything that can be judged from the journals and the storage.
func (h *History) check() (findings []Finding) {
	for _, w := range h.workloads {
		for _, lock := range w.Locks {
			findings = append(findings, h.overlaps(lock, w.Capacity)...)
			if w.Check != nil {
				findings = append(findings, w.Check(h, lock)...)
			}
		}
	}
	findings = append(findings, h.lateLosses()...)
	findings = append(findings, h.repeated...)
	return append(findings, h.broken...)
}

// at is an instant from the start of the run, as text.
func (h *History) at(t time.Duration) string {
	return fmt.Sprintf("%.3fs", (t - h.start).Seconds())
}
