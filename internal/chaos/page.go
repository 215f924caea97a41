package chaos

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Parse(pageSource))

// WriteHTML writes the run as one page that needs nothing else: the tables, a
// lane for each master, client and lock, and the faults as they happened.
func (r *Report) WriteHTML(w io.Writer) error {
	var tables, log strings.Builder
	r.WriteText(&tables)
	r.WriteLog(&log)
	p := &picture{report: r, end: r.Closed - r.Start}
	p.draw()
	return page.Execute(w, struct {
		Seed        uint64
		OK          bool
		Tables, Log string
		Picture     *picture
	}{r.Seed, r.OK(), tables.String(), log.String(), p})
}

// The layout of the picture, in pixels.
const (
	pageWidth  = 1220
	leftMargin = 90
	laneHeight = 22
	topMargin  = 20
)

// picture is the run as lanes of bars.
type picture struct {
	report *Report
	end    time.Duration

	Lanes []lane
	Ticks []tick
	Bars  []bar
}

type lane struct {
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
}

// Height is that of all lanes.
func (p *picture) Height() int { return topMargin + laneHeight*len(p.Lanes) }

func (p *picture) x(at time.Duration) float64 {
	return leftMargin + (pageWidth-leftMargin)*float64(at)/float64(p.end)
}

func (p *picture) draw() {
	r := p.report
	masters, clients := map[int]int{}, map[int]int{}
	for i := range r.Masters {
		masters[i] = p.addLane(fmt.Sprintf("master %d", i))
	}
	for i := range r.Clients {
		clients[i] = p.addLane(fmt.Sprintf("client %d", i))
	}
	for _, d := range r.Faults {
		y := masters[d.Target]
		switch d.Kind.component {
		case aLink:
			y = clients[d.Target/r.Masters]
		case aClient:
			y = clients[d.Target]
		}
		p.addBar(y, d.From, d.Until, string(classOf(d.Kind)), fmt.Sprintf("%s %s: %s", d.Kind.component, r.target(d), d.Kind.Name))
	}
	for _, w := range r.Workloads {
		for _, lock := range w.Locks {
			p.drawLock(p.addLane(lock), lock)
		}
	}
	for _, f := range r.Findings {
		p.Bars = append(p.Bars, bar{p.x(f.At - r.Start), 2, topMargin, p.Height() - topMargin, "finding", fmt.Sprintf("%s: %s", f.Check, f.Text)})
	}
	const ticks = 12
	for i := range ticks {
		at := p.end * time.Duration(i) / ticks
		p.Ticks = append(p.Ticks, tick{p.x(at), fmt.Sprintf("%.0fs", at.Seconds())})
	}
}

func classOf(k *Kind) component {
	if k.component == aDurable {
		return aMaster
	}
	return k.component
}

func (p *picture) addLane(name string) (y int) {
	y = p.Height()
	p.Lanes = append(p.Lanes, lane{name, y})
	return y
}

func (p *picture) addBar(y int, from, to time.Duration, class, detail string) {
	detail = fmt.Sprintf("%s, %.3fs to %.3fs", detail, from.Seconds(), to.Seconds())
	p.Bars = append(p.Bars, bar{p.x(from), max(1, p.x(to)-p.x(from)), y + 3, laneHeight - 6, class, detail})
}

// drawLock leaves out holds that are too short to be seen where one is drawn
// already: a page of a hundred thousand bars opens nowhere.
func (p *picture) drawLock(y int, lock string) {
	drawn := -1.0
	for _, s := range p.report.History.of(lock) {
		from, to := s.From-p.report.Start, s.To-p.report.Start
		if p.x(to) < drawn+0.5 {
			continue
		}
		drawn = p.x(to)
		detail := s.Lease
		if s.Lost != "" {
			detail += ", " + s.Lost
		}
		p.addBar(y, from, to, fmt.Sprintf("held owner%d", s.Client%6), detail)
	}
}
