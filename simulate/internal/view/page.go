package view

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

//go:embed page.html
var pageSource string

var Page = template.Must(template.New("page").Parse(pageSource))

// Sheet is the data of the page.
type Sheet struct {
	Title, Sub string
	Head       [3]string // of the table, if there is one
	Rows       []Row     // of the table
	Below      []string  // sentences below the table
	Runs       []RunView
	Faults     []string
	Seed       uint64
}

// RunView is one run on the page.
type RunView struct {
	Name       string // which lock it is of, in a comparison
	Why        string
	Violations []tally.Violation
	Hash       string
	Pictures   []picture
}

// WriteHTML writes the timeline as one page that needs nothing else: a lane for
// each client and each master, the faults, and the violation.
func (tl *Timeline) WriteHTML(w io.Writer) error {
	from, to := tl.Window()
	all := tl.Run("", "All of it", 0, tl.end())
	if tl.focus != nil {
		all.Pictures = slices.Insert(all.Pictures, 0, tl.drawn("What went wrong", from, to)...)
	}
	return Page.Execute(w, Sheet{Title: tl.Title, Sub: "One simulated run.", Runs: []RunView{all}, Faults: tl.Faults(), Seed: tl.Schedule.Seed})
}

// Run returns the part of the timeline between two instants, for the page.
func (tl *Timeline) Run(name, title string, from, to time.Duration) RunView {
	return RunView{Name: name, Why: tl.why, Violations: tl.Violations, Hash: fmt.Sprintf("%016x", tl.Hash), Pictures: tl.drawn(title, from, to)}
}

// picture is one drawing of the lanes, in pixels.
type picture struct {
	Title  string
	Class  string // wide or narrow
	Width  int
	Height int
	Lanes  []laneLabel
	Ticks  []tick
	Bars   []bar
	Flags  []flag
	Clash  []bar
}

type laneLabel struct {
	Name string
	Y    int
}

type tick struct {
	X     float64
	Label string
}

type bar struct {
	X, Width      float64
	Y, Height     int
	Class, Detail string
	Text          string
}

type flag struct {
	X, Width float64
	Y        int
	Detail   string
	Class    string
	Numbers  string // of the faults that begin there, in the list below
}

// The layout of a drawing.
const (
	pageWidth  = 1220
	phoneWidth = 560
	leftMargin = 84
	laneHeight = 34
	topMargin  = 26
)

// scale maps true time to pixels.
type scale struct {
	from, to time.Duration
	width    int
}

func (s scale) x(t time.Duration) float64 {
	t = min(max(t, s.from), s.to)
	return leftMargin + float64(t-s.from)/float64(max(1, s.to-s.from))*float64(s.width-leftMargin-10)
}

// drawn draws the same for a wide window and for a phone.
func (tl *Timeline) drawn(title string, from, to time.Duration) []picture {
	return []picture{tl.draw(title, "wide", scale{from, to, pageWidth}), tl.draw(title, "narrow", scale{from, to, phoneWidth})}
}

func (tl *Timeline) draw(title, class string, sc scale) picture {
	from, to := sc.from, sc.to
	names, rows := tl.lanes(), tl.rows()
	p := picture{Title: title, Class: class, Width: sc.width, Height: topMargin + len(names)*laneHeight + 8, Ticks: ticks(sc)}
	for i, name := range names {
		p.Lanes = append(p.Lanes, laneLabel{name, topMargin + i*laneHeight})
	}
	for _, s := range tl.trace.spans {
		lane := slices.Index(names, s.lane)
		if lane < 0 || s.to < from || s.from > to {
			continue
		}
		p.Bars = append(p.Bars, tl.bar(s, sc, topMargin+lane*laneHeight, rows))
	}
	slices.SortStableFunc(p.Bars, func(a, b bar) int { return order[a.Class] - order[b.Class] })
	faults := tl.Faults()
	for _, m := range tl.trace.marks {
		if m.at+m.lasts < from || m.at > to {
			continue
		}
		for i, name := range names {
			if concerns(m.lane, name) {
				x := sc.x(m.at)
				p.strike(flag{x, sc.x(m.at+m.lasts) - x, topMargin + i*laneHeight, strings.TrimSpace(m.label), "fault", ""}, faults)
			}
		}
	}
	if a, b := tl.clash(); b > a {
		p.Clash = append(p.Clash, bar{
			X: sc.x(a), Width: max(2, sc.x(b)-sc.x(a)), Y: topMargin - 4, Height: len(names)*laneHeight + 4,
			Detail: fmt.Sprintf("both hold the lock from %.3fs to %.3fs", a.Seconds(), b.Seconds()),
		})
	}
	for _, v := range tl.Violations {
		if v.At >= from && v.At <= to {
			p.Flags = append(p.Flags, flag{sc.x(v.At), 0, topMargin - 8, v.String(), "violation", ""})
		}
	}
	return p
}

// strike adds a fault at one lane, with its number in the list. What begins at almost the
// same place shares one label, or one number would hide the other.
func (p *picture) strike(f flag, list []string) {
	const room = 14
	number := fmt.Sprint(1 + slices.Index(list, f.Detail))
	for i := range p.Flags {
		other := &p.Flags[i]
		if other.Class == "fault" && other.Y == f.Y && math.Abs(other.X-f.X) < room && other.Numbers != "" {
			other.Numbers += " " + number
			p.Flags = append(p.Flags, f)
			return
		}
	}
	f.Numbers = number
	p.Flags = append(p.Flags, f)
}

// order is the order of drawing: later ones cover earlier ones.
var order = map[string]int{"key": 0, "waiting": 1, "held": 2, "clock": 3, "stopped": 4, "down": 5}

// concerns reports whether a fault strikes a host; where is Fault.where.
func concerns(where, host string) bool {
	for part := range strings.SplitSeq(where, "-") {
		if part == host || part == "every node" && len(host) == 1 || part == "every client" && len(host) > 1 {
			return true
		}
	}
	return false
}

// rows is how many permits or readers share the lane of a master.
func (tl *Timeline) rows() (n int) {
	for _, s := range tl.trace.spans {
		n = max(n, s.row)
	}
	return n
}

func (tl *Timeline) bar(s span, sc scale, y, rows int) bar {
	b := bar{
		X: sc.x(s.from), Y: y + 4, Height: laneHeight - 12, Class: string(s.kind),
		Detail: fmt.Sprintf("%s: %s, %.3fs to %.3fs (%v)", s.lane, detail(s), s.from.Seconds(), s.to.Seconds(), plan.Short(s.to-s.from)),
	}
	b.Width = max(1.2, sc.x(s.to)-b.X)
	if s.row > 0 {
		b.Y, b.Height = b.Y+(s.row-1)*b.Height/rows, max(2, b.Height/rows-1)
	}
	switch s.kind {
	case spanHeld, spanKey:
		b.Class += fmt.Sprintf(" owner%d", s.client%6)
		if b.Width > 60 && s.kind == spanKey && (s.row == 0 || rows == 1) {
			b.Text = plan.ClientName(s.client)
		}
		if b.Width > 60 && s.kind == spanHeld {
			b.Text = "holds"
		}
	case spanWaiting:
		b.Y, b.Height = y+12, laneHeight-28
	case spanClock:
		b.Y, b.Height = y+laneHeight-8, 4
	}
	return b
}

func detail(s span) string {
	switch s.kind {
	case spanHeld:
		return "holds the lock, then " + s.label
	case spanWaiting:
		return "waits for the lock"
	}
	return s.label
}

// ticks returns round instants: at most sixteen, or eight in a narrow picture.
func ticks(sc scale) []tick {
	step := time.Millisecond
	for i := 0; (sc.to-sc.from)/step > time.Duration(sc.width/80); i++ {
		step *= []time.Duration{2, 5, 2}[i%3]
		if i%3 == 1 {
			step /= 2
		}
	}
	var list []tick
	for t := sc.from.Truncate(step); t <= sc.to; t += step {
		if t >= sc.from {
			list = append(list, tick{sc.x(t), t.String()})
		}
	}
	return list
}

// Row is one row of the table.
type Row struct{ What, Naive, Ours string }

// Faults lists the faults of the schedule, without the blanks before them. Behind them come
// the faults that struck and are not in the schedule in these words: a fault that waited for a
// client to get the lock, and a fault that a schedule has happen in the middle of a call.
func (tl *Timeline) Faults() []string {
	lines := slices.Clone(tl.listed)
	if lines == nil {
		for _, f := range tl.Schedule.Faults {
			lines = append(lines, strings.TrimSpace(f.String()))
		}
	}
	for _, m := range tl.trace.marks {
		if struck := strings.TrimSpace(m.label); !slices.Contains(lines, struck) {
			lines = append(lines, struck)
		}
	}
	return lines
}

// Beside has the timeline number its faults as the other one does, which ran the same
// schedule, and then the faults that struck here only.
func (tl *Timeline) Beside(other *Timeline) { tl.listed = other.Faults() }
