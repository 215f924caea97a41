// Package view shows one recorded run, as text and as a page.
package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Timeline is one recorded run of a schedule, to be written as text or as a page.
type Timeline struct {
	Title      string
	Schedule   *plan.Schedule
	Violations []tally.Violation
	Hash       uint64

	trace   *Trace
	focus   *tally.Violation // the violation that it is about; nil: nothing broke
	why     string           // why a naive lock broke; may be empty
	listed  []string         // faults of the run beside it, on the same page
	nodes   int
	clients int
}

// lanes returns the names of the hosts, clients first. Clients that did nothing
// are left out.
func (tl *Timeline) lanes() []string {
	var names []string
	for i := range tl.clients {
		if tl.acts(i) {
			names = append(names, plan.ClientName(i))
		}
	}
	for i := range tl.nodes {
		names = append(names, string(rune('A'+i)))
	}
	return names
}

// acts reports whether a client has a lane: the schedule has actions of it or none at all,
// since clients run a workload then; it wanted the lock, also when all was well again; or
// a fault struck it.
func (tl *Timeline) acts(client int) bool {
	name := plan.ClientName(client)
	for _, s := range tl.trace.spans {
		if s.lane == name && (s.kind == spanHeld || s.kind == spanWaiting) {
			return true
		}
	}
	for _, f := range tl.Schedule.Faults {
		if strings.HasPrefix(f.Where()+"-", name+"-") {
			return true
		}
	}
	for i, list := range tl.Schedule.Actions {
		if i%tl.clients == client && len(list) > 0 {
			return true
		}
	}
	return len(tl.Schedule.Actions) == 0
}

// Window is the part of the run that shows the violation, or all of it.
func (tl *Timeline) Window() (from, to time.Duration) {
	end := tl.end()
	if tl.focus == nil || tl.focus.At >= tl.Schedule.Config.Duration {
		return 0, end // a violation after the healing may have begun anywhere
	}
	from, to = tl.focus.At, tl.focus.At
	for _, s := range tl.trace.spans {
		if s.kind == spanHeld && s.from <= tl.focus.At && s.to >= tl.focus.At {
			from, to = min(from, s.from), max(to, s.to)
		}
	}
	// The faults that led to it began before that.
	for _, m := range tl.trace.marks {
		if m.at < from && from-m.at < 2*tl.Schedule.Config.TTL {
			from = m.at
		}
	}
	margin := max((to-from)/5, 50*time.Millisecond)
	return max(0, from-margin), min(end, to+margin)
}

func (tl *Timeline) end() time.Duration {
	end := tl.trace.end
	for _, s := range tl.trace.spans {
		end = max(end, s.to)
	}
	return end
}

// clash is when the two holds of an overlap were both valid; zero if there is
// none.
func (tl *Timeline) clash() (from, to time.Duration) {
	if tl.focus == nil || tl.focus.Kind != tally.Overlap {
		return 0, 0
	}
	from, to = tl.focus.At, tl.end()
	n := 0
	for _, s := range tl.trace.spans {
		if s.kind == spanHeld && s.from <= tl.focus.At && s.to >= tl.focus.At {
			to = min(to, s.to)
			n++
		}
	}
	if n < 2 {
		to = from
	}
	return from, to
}

// line is one line of the text.
type line struct {
	at   time.Duration
	lane string
	text string
}

// maxLines bounds the text to the lines that are nearest to the violation.
const maxLines = 120

// maxFaults is how many faults a schedule may have for the faults before the window to be
// listed. A schedule that was not shrunk has too many for the list to be of use.
const maxFaults = 20

// WriteText writes what happened, line by line.
func (tl *Timeline) WriteText(w io.Writer) error {
	from, to := tl.Window()
	lines := tl.lines(from, to)
	var b strings.Builder
	fmt.Fprintf(&b, "%s, from %.3fs to %.3fs\n", tl.Title, from.Seconds(), to.Seconds())
	if n := len(tl.Schedule.Faults); n <= maxFaults {
		for _, f := range tl.Schedule.Faults {
			if f.At < from {
				fmt.Fprintf(&b, "%v (before that)\n", f)
			}
		}
	}
	if n := len(lines) - maxLines; n > 0 {
		fmt.Fprintf(&b, "  (%d earlier lines left out)\n", n)
		lines = lines[n:]
	}
	for _, l := range lines {
		fmt.Fprintf(&b, "%9.3fs  %-9s  %s\n", l.at.Seconds(), l.lane, wrap.Text(l.text, 23, 80))
	}
	for _, v := range tl.Violations {
		fmt.Fprintf(&b, "%9.3fs  %s\n", v.At.Seconds(), wrap.Text(string(v.Kind)+": "+v.What, 12, 80))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (tl *Timeline) lines(from, to time.Duration) []line {
	var lines []line
	add := func(at time.Duration, lane, format string, args ...any) {
		if at >= from && at <= to {
			lines = append(lines, line{at, lane, fmt.Sprintf(format, args...)})
		}
	}
	for _, m := range tl.trace.marks {
		_, text, _ := strings.Cut(m.label, "s  ")
		add(m.at, "fault", "%s", text)
	}
	for _, s := range tl.trace.spans {
		switch s.kind {
		case spanWaiting:
			add(s.from, s.lane, "asks for the lock")
		case spanHeld:
			add(s.from, s.lane, "HOLDS the lock")
			add(s.to, s.lane, "holds it no more: %s", s.label)
		case spanKey:
			if tl.inVain(s) {
				continue
			}
			add(s.from, s.lane, "+ %s", s.stored)
			add(s.to, s.lane, "- %s", s.stored)
		default:
			add(s.from, s.lane, "%s", s.label)
			add(s.to, s.lane, "no more: %s", s.label)
		}
	}
	for _, v := range tl.Violations {
		add(v.At, "!!!", "%s: %s", v.Kind, v.What)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	return together(lines)
}

// inVain reports whether a key was of an attempt that failed. A contended lock has many
// of them.
func (tl *Timeline) inVain(key span) bool {
	if key.to-key.from > tl.Schedule.Config.TTL/4 {
		return false
	}
	for _, s := range tl.trace.spans {
		if s.kind == spanHeld && s.client == key.client && s.from-key.to < time.Millisecond && key.from-s.to < time.Millisecond {
			return false
		}
	}
	return true
}

// together joins what happens at several masters at about the same time.
func together(lines []line) []line {
	var joined []line
next:
	for _, l := range lines {
		for i := len(joined) - 1; i >= 0 && len(l.lane) == 1 && l.at-joined[i].at < 10*time.Millisecond; i-- {
			j := &joined[i]
			if j.text == l.text && !strings.Contains(j.lane, l.lane) {
				j.lane += l.lane
				continue next
			}
			if len(j.lane) > 1 && strings.Contains(j.lane, l.lane) {
				break
			}
		}
		joined = append(joined, l)
	}
	for i, l := range joined {
		if len(l.lane) <= 26 && l.lane == strings.ToUpper(l.lane) {
			names := []byte(l.lane)
			slices.Sort(names)
			joined[i].lane = string(names)
		}
	}
	return joined
}

// NewTimeline makes a timeline of a schedule that was recorded. It is about a violation of
// the given kind, if there is one.
func NewTimeline(s *plan.Schedule, tr *Trace, violations []tally.Violation, hash uint64, about tally.ViolationKind) *Timeline {
	tl := &Timeline{
		Title:      fmt.Sprintf("seed %d", s.Seed),
		Schedule:   s,
		Violations: violations,
		Hash:       hash,
		trace:      tr,
		nodes:      s.Config.Nodes,
		clients:    s.Config.Clients,
	}
	for i, v := range violations {
		if tl.focus == nil || v.Kind == about && tl.focus.Kind != about {
			tl.focus = &violations[i]
		}
	}
	return tl
}
