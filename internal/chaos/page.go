package chaos

import (
	"fmt"
	"html"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/page"
)

// WriteHTML writes the run as one page: the timeline, the tables, and the faults.
func (r *Report) WriteHTML(w io.Writer) error {
	var tables, log strings.Builder
	r.WriteText(&tables)
	r.WriteLog(&log)
	p := &page.Page{Title: fmt.Sprintf("Chaos, seed %d", r.Seed), Fine: "No promise was broken."}
	if !r.OK() {
		p.Fine, p.Broken = "", "Something was found."
	}
	p.Sections = []page.Section{
		{Title: "Timeline", Charts: []template.HTML{r.draw()}, Text: "Masters: faults (dark), a wrong clock (brown). " +
			"Clients: stopped, killed or ended (grey), cut off, slow or reset (light). Locks: their holders, by client. Findings are red. Hover over a bar for details."},
		{Title: "Results", Pre: tables.String()},
		{Title: "Faults as they happened", Pre: log.String()},
	}
	return p.Write(w)
}

// The layout of the timeline, in pixels.
const (
	pageWidth  = 1220
	leftMargin = 90
	laneHeight = 22
	topMargin  = 20
)

// picture is the timeline under construction: a lane for each master, client and lock.
type picture struct {
	*Report
	end    time.Duration
	height int // of all lanes
	svg    strings.Builder
}

func (r *Report) draw() template.HTML {
	p := &picture{Report: r, end: r.Closed - r.Start, height: topMargin}
	masters, clients := p.lanes("master", r.Masters), p.lanes("client", r.Clients)
	for _, d := range r.Faults {
		y, class := 0, d.Kind.component
		switch class {
		case aLink:
			y = clients[d.Target/r.Masters]
		case aClient:
			y = clients[d.Target]
		case aDurable:
			y, class = masters[d.Target], aMaster
		default:
			y = masters[d.Target]
		}
		p.bar(y, d.From, d.Until, string(class), fmt.Sprintf("%s %s: %s", d.Kind.component, r.target(d), d.Kind.Name))
	}
	for _, w := range r.Workloads {
		for _, lock := range w.Locks {
			p.holds(p.lane(lock), lock)
		}
	}
	for _, f := range r.Findings {
		p.rect(p.x(f.At-r.Start), 2, topMargin, p.height-topMargin, "finding", fmt.Sprintf("%s: %s", f.Check, f.Text))
	}
	const ticks = 12
	for i := range ticks {
		at := p.end * time.Duration(i) / ticks
		fmt.Fprintf(&p.svg, `<line class="grid" x1="%.1f" x2="%.1f" y1="18" y2="%d"/><text class="tick" x="%.1f" y="13">%.0fs</text>`,
			p.x(at), p.x(at), p.height, p.x(at), at.Seconds())
	}
	return template.HTML(fmt.Sprintf(`<svg class="timeline" viewBox="0 0 %d %d" role="img" aria-label="timeline">%s</svg>`, pageWidth, p.height, p.svg.String()))
}

func (p *picture) x(at time.Duration) float64 {
	return leftMargin + (pageWidth-leftMargin)*float64(at)/float64(p.end)
}

func (p *picture) lanes(name string, n int) (ys []int) {
	for i := range n {
		ys = append(ys, p.lane(fmt.Sprintf("%s %d", name, i)))
	}
	return ys
}

// lane adds a lane and returns its upper edge.
func (p *picture) lane(name string) (y int) {
	y, p.height = p.height, p.height+laneHeight
	fmt.Fprintf(&p.svg, `<line class="grid" x1="0" x2="%d" y1="%d" y2="%d"/><text x="8" y="%d">%s</text>`, pageWidth, y, y, y+15, html.EscapeString(name))
	return y
}

func (p *picture) bar(y int, from, to time.Duration, class, detail string) {
	detail = fmt.Sprintf("%s, %.3fs to %.3fs", detail, from.Seconds(), to.Seconds())
	p.rect(p.x(from), max(1, p.x(to)-p.x(from)), y+3, laneHeight-6, class, detail)
}

func (p *picture) rect(x, width float64, y, height int, class, detail string) {
	fmt.Fprintf(&p.svg, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`, class, x, y, width, height, html.EscapeString(detail))
}

// holds draws who held a lock. It leaves out holds that are too short to be seen beside
// the one before: no browser opens a page of a hundred thousand bars.
func (p *picture) holds(y int, lock string) {
	drawn := -1.0
	for _, s := range p.History.of(lock) {
		from, to := s.From-p.Start, s.To-p.Start
		if p.x(to) < drawn+0.5 {
			continue
		}
		drawn = p.x(to)
		detail := s.Lease
		if s.Lost != "" {
			detail += ", " + s.Lost
		}
		p.bar(y, from, to, fmt.Sprintf("owner%d", s.Client%6), detail)
	}
}
