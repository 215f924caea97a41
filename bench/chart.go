package bench

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
)

// lane is one row of a ridge plot.
type lane struct {
	name, color string
	d           Distribution
	p50, p99    float64
	note        string
	stuck       bool // without latencies: a call did not return
}

func (g *group) lanes() (all []lane) {
	for _, r := range g.results {
		l := lane{name: r.Subject, color: color(r.Subject), d: r.Latency[""], p50: r.value(P50), p99: r.value(P99)}
		if v := r.value(P50R); !math.IsNaN(v) {
			l.note = fmt.Sprintf("%.2f R", v)
		}
		all = append(all, l)
	}
	return all
}

func (g *group) stateLanes() (all []lane) {
	for _, r := range g.results {
		for _, state := range States {
			l := lane{name: state, color: color(r.Subject), d: r.Latency[state], p50: r.value(named(state, P50)), p99: r.value(named(state, P99))}
			if len(g.results) > 1 {
				l.name = r.Subject + ", " + state
			}
			if v := r.value(named(state, P50Ratio)); !math.IsNaN(v) {
				l.note = fmt.Sprintf("%.2fx", v)
			}
			if v := r.value(named(state, P50R)); !math.IsNaN(v) {
				l.note += fmt.Sprintf(" %.2f R", v)
			}
			if r.value(named(state, Stuck)) > 0 {
				l.note, l.stuck = fmt.Sprintf("stuck, > %v", stuckAfter), true
			}
			if len(l.d.Count) > 0 || l.note != "" {
				all = append(all, l)
			}
		}
	}
	return all
}

// ridges draws distributions above each other on one logarithmic axis, with p50 and
// p99 marked. The names stand above their ridges, so that it can be read on a telephone.
func ridges(lanes []lane) template.HTML {
	const width, plot, top, row, foot, bins, ridge = 700.0, 560.0, 6.0, 62.0, 34.0, 150, 38.0
	lo, hi := extent(lanes)
	if lo >= hi {
		return ""
	}
	x := func(us float64) float64 { return plot * math.Log(us/lo) / math.Log(hi/lo) }
	height := top + row*float64(len(lanes)) + foot
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="ridges" viewBox="0 0 %.0f %.0f" role="img">`, width, height)
	grid(&b, lo, hi, x, top, height-foot)
	for i, l := range lanes {
		from := top + row*float64(i)
		base := from + row
		text := func(class string, x, y float64, s string) {
			fmt.Fprintf(&b, `<text class="%s" x="%.0f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(s))
		}
		text("above", 0, from+15, l.name)
		fmt.Fprintf(&b, `<line class="grid" x1="0" x2="%.0f" y1="%.1f" y2="%.1f"/>`, plot, base, base)
		if len(l.d.Count) > 0 {
			area(&b, l, l.d.density(lo, hi, bins), plot/bins, base, ridge)
			for class, us := range map[string]float64{"p50": l.p50, "p99": l.p99} {
				fmt.Fprintf(&b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, x(us), x(us), base, base-ridge)
			}
			text("value", plot+10, from+28, duration(l.p50))
			text("soft", plot+10, from+43, "p99 "+duration(l.p99))
		}
		if l.stuck {
			text("note stuck", plot+10, from+58, l.note)
		} else if l.note != "" {
			text("note", plot+10, from+58, l.note)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// extent is the range of the axis: from the fastest to the slowest, but for one in a
// thousand at either end.
func extent(lanes []lane) (lo, hi float64) {
	lo, hi = math.Inf(1), 0
	for _, l := range lanes {
		if len(l.d.UpTo) > 0 {
			lo = min(lo, l.d.quantile(0.001))
			hi = max(hi, l.d.quantile(0.999))
		}
	}
	return lo / 1.15, hi * 1.15
}

// grid draws the axis at 1, 2 and 5 of each decade, if it is not very long or short.
// A tick too close to the one before has no label.
func grid(b *strings.Builder, lo, hi float64, x func(float64) float64, top, bottom float64) {
	const apart = 48.0
	steps := []float64{1, 2, 5}
	switch decades := math.Log10(hi / lo); {
	case decades > 3.2:
		steps = steps[:1]
	case decades < 0.7:
		steps = []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}
	}
	last := math.Inf(-1)
	for decade := math.Pow(10, math.Floor(math.Log10(lo))); decade < hi; decade *= 10 {
		for _, step := range steps {
			us := decade * step
			if us <= lo || us >= hi {
				continue
			}
			fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.0f" y2="%.0f"/>`, x(us), x(us), top, bottom+5)
			if x(us)-last >= apart {
				last = x(us)
				fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.0f">%s</text>`, max(x(us), apart/2), bottom+20, tick(us))
			}
		}
	}
}

func tick(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%g µs", math.Round(us*10)/10)
	case us < 1_000_000:
		return fmt.Sprintf("%g ms", math.Round(us/100)/10)
	}
	return fmt.Sprintf("%g s", math.Round(us/100_000)/10)
}

func area(b *strings.Builder, l lane, density []float64, width, base, height float64) {
	fmt.Fprintf(b, `<path fill="%s" fill-opacity=".75" stroke="%s" d="M0 %.1f`, l.color, l.color, base)
	for i, v := range density {
		fmt.Fprintf(b, `V%.1fH%.1f`, base-v*height, width*float64(i+1))
	}
	fmt.Fprintf(b, `V%.1fZ"/>`, base)
}

// bar is one row of a bar chart, with one or two values on top of each other.
type bar struct {
	name, color string
	values      []float64
}

func (g *group) bars(metrics ...Metric) (all []bar) {
	for _, r := range g.results {
		b := bar{name: r.name(), color: color(r.Subject)}
		for _, m := range metrics {
			if v := r.value(m); !math.IsNaN(v) {
				b.values = append(b.values, v)
			}
		}
		all = append(all, b)
	}
	return all
}

// bars draws horizontal bars.
func bars(title, unit string, all []bar) template.HTML {
	const width, label, right, row, top = 560.0, 180.0, 100.0, 26.0, 46.0
	most := 0.0
	for _, b := range all {
		most = max(most, sum(b.values))
	}
	if most == 0 {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg viewBox="0 0 %.0f %.0f" role="img"><text class="head" x="0" y="16">%s</text><text class="unit" x="0" y="34">%s</text>`,
		width, top+row*float64(len(all))+4, html.EscapeString(upper(title)), html.EscapeString(unit))
	for i, b := range all {
		y := top + row*float64(i)
		fmt.Fprintf(&s, `<text class="name" x="%.0f" y="%.1f">%s</text>`, label-10, y+15, html.EscapeString(b.name))
		x, amounts := label, make([]string, len(b.values))
		for part, v := range b.values {
			w := (width - label - right) * v / most
			fmt.Fprintf(&s, `<rect x="%.1f" y="%.1f" width="%.1f" height="18" fill="%s" fill-opacity="%.2f"/>`, x, y+1, w, b.color, 1-.55*float64(part))
			x += w
			amounts[part] = thousands(v)
			if v < 100 {
				amounts[part] = fmt.Sprintf("%.1f", v)
			}
		}
		fmt.Fprintf(&s, `<text class="value" x="%.1f" y="%.1f">%s</text>`, x+7, y+15, strings.Join(amounts, " + "))
	}
	s.WriteString(`</svg>`)
	return template.HTML(s.String())
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

func (d Distribution) quantile(q float64) float64 {
	var total int64
	for _, c := range d.Count {
		total += c
	}
	left := q * float64(total)
	for i, c := range d.Count {
		if left -= float64(c); left <= 0 {
			return d.UpTo[i]
		}
	}
	return d.UpTo[len(d.UpTo)-1]
}

// modes are the latencies around which operations gather, if they do around more
// than one: peaks with a tenth of the highest at least, and a valley of less than
// half of the lower one between them.
func (d Distribution) modes() (peaks []float64) {
	const bins = 60
	if len(d.Count) == 0 {
		return nil
	}
	lo, hi := d.quantile(0.005)/1.05, d.quantile(0.99)*1.05
	at := func(bin int) float64 { return lo * math.Pow(hi/lo, (float64(bin)+0.5)/bins) }
	density := d.density(lo, hi, bins)
	top, valley := -1, 1.0
	for i, v := range density {
		valley = min(valley, v)
		switch {
		case v < 0.1:
		case top < 0 || valley < min(v, density[top])/2:
			peaks = append(peaks, at(i))
			top, valley = i, v
		case v > density[top]:
			peaks[len(peaks)-1] = at(i)
			top, valley = i, v
		}
	}
	return peaks
}

// density counts a distribution in bins of equal width on a logarithmic axis
// from lo to hi microseconds, scaled so that the highest is 1.
func (d Distribution) density(lo, hi float64, bins int) []float64 {
	density := make([]float64, bins)
	for i, up := range d.UpTo {
		at := int(float64(bins) * math.Log(up/lo) / math.Log(hi/lo))
		// The histogram's own steps must not show as teeth: an operation counts
		// for a third in its bin and for less in the bins beside it.
		for j, share := range []float64{1, 2, 3, 2, 1} {
			density[min(max(at+j-2, 0), bins-1)] += share * float64(d.Count[i])
		}
	}
	if top := slices.Max(density); top > 0 {
		for i := range density {
			density[i] /= top
		}
	}
	return density
}
