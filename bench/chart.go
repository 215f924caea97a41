package bench

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// shape is how a chart uses its width.
type shape struct {
	class               string
	width, right, row   float64
	label               float64 // of the column of names; zero: they stand above what they name
	ticks               float64 // the least distance of two
	valueDown, noteDown float64 // from the top of a row; values stand at the right
}

// Drawn for a page, and for a telephone or paper; the page shows one of them.
var (
	wide   = shape{class: "ridges wide-only", width: 1160, right: 150, row: 46, label: 150, ticks: 44, valueDown: 28, noteDown: 43}
	narrow = shape{class: "ridges narrow-only", width: 560, right: 96, row: 62, ticks: 48, valueDown: 28, noteDown: 58}
)

// ridges draws distributions above each other on one logarithmic axis, with p50
// and p99 marked.
func ridges(lanes []lane) template.HTML {
	lo, hi := extent(lanes)
	if lo >= hi {
		return ""
	}
	return template.HTML(wide.ridges(lanes, lo, hi) + narrow.ridges(lanes, lo, hi))
}

func (s shape) ridges(lanes []lane, lo, hi float64) string {
	const top, foot, bins, ridge = 6.0, 34.0, 150, 38.0
	var names []string
	for _, l := range lanes {
		names = append(names, l.name)
	}
	label := s.label
	if label > 0 {
		label = room(names, label)
	}
	plot := s.width - label - s.right
	x := func(us float64) float64 { return label + plot*math.Log(us/lo)/math.Log(hi/lo) }
	height := top + s.row*float64(len(lanes)) + foot
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="%s" viewBox="0 0 %.0f %.0f" role="img">`, s.class, s.width, height)
	grid(&b, lo, hi, x, top, height-foot, s.ticks)
	for i, l := range lanes {
		from := top + s.row*float64(i)
		base := from + s.row
		fmt.Fprintf(&b, `<g><title>%s: p50 %s, p99 %s, %s operations</title>`,
			html.EscapeString(l.name), duration(l.p50), duration(l.p99), thousands(float64(l.d.total())))
		if label > 0 {
			fmt.Fprintf(&b, `<text class="name" x="%.0f" y="%.1f">%s</text>`, label-14, base-12, html.EscapeString(l.name))
		} else {
			fmt.Fprintf(&b, `<text class="above" x="0" y="%.1f">%s</text>`, from+15, html.EscapeString(l.name))
		}
		fmt.Fprintf(&b, `<line class="base" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`, label, label+plot, base, base)
		if len(l.d.Count) > 0 {
			area(&b, l, lo, hi, bins, label, plot, base, ridge)
			mark(&b, x(l.p50), base, ridge, "p50")
			mark(&b, x(l.p99), base, ridge, "p99")
			s.values(&b, l, label+plot+10, from)
		}
		if l.note != "" {
			class := "note"
			if l.stuck {
				class = "note stuck"
			}
			fmt.Fprintf(&b, `<text class="%s" x="%.0f" y="%.1f">%s</text>`, class, label+plot+10, from+s.noteDown, html.EscapeString(l.note))
		}
		b.WriteString(`</g>`)
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// values writes p50 and p99 beside a ridge, or above each other where there is
// little room.
func (s shape) values(b *strings.Builder, l lane, x, from float64) {
	if s.label > 0 {
		fmt.Fprintf(b, `<text class="value" x="%.0f" y="%.1f">%s <tspan class="soft">p99 %s</tspan></text>`, x, from+s.valueDown, duration(l.p50), duration(l.p99))
		return
	}
	fmt.Fprintf(b, `<text class="value" x="%.0f" y="%.1f">%s</text><text class="soft" x="%.0f" y="%.1f">p99 %s</text>`,
		x, from+s.valueDown, duration(l.p50), x, from+s.valueDown+15, duration(l.p99))
}

// extent is the range of the axis: everything up to the highest p99 and a bit,
// but not the few slowest operations of all.
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

func (d Distribution) total() (n int64) {
	for _, c := range d.Count {
		n += c
	}
	return n
}

func (d Distribution) quantile(q float64) float64 {
	left := q * float64(d.total())
	for i, c := range d.Count {
		if left -= float64(c); left <= 0 {
			return d.UpTo[i]
		}
	}
	return d.UpTo[len(d.UpTo)-1]
}

// grid draws the axis at 1, 2 and 5 of each decade, if it is not very long or
// short. What stands too close to another is not written.
func grid(b *strings.Builder, lo, hi float64, x func(float64) float64, top, bottom, apart float64) {
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
				fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.0f">%s</text>`, max(x(us), apart/2), bottom+20, tick(us)) // not cut off
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

func area(b *strings.Builder, l lane, lo, hi float64, bins int, left, plot, base, height float64) {
	fmt.Fprintf(b, `<path fill="%s" fill-opacity=".75" stroke="%s" d="M%.1f %.1f`, l.color, l.color, left, base)
	for i, v := range l.d.density(lo, hi, bins) {
		x, w := left+plot*float64(i)/float64(bins), plot/float64(bins)
		fmt.Fprintf(b, `V%.1fH%.1f`, base-v*height, x+w)
	}
	fmt.Fprintf(b, `V%.1fZ"/>`, base)
}

func mark(b *strings.Builder, x, base, height float64, class string) {
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, x, x, base, base-height)
}

// bars draws horizontal bars.
func bars(title, unit string, all []bar) template.HTML {
	const width, right, row, top = 560.0, 100.0, 26.0, 46.0
	var names []string
	most := 0.0
	for _, b := range all {
		names = append(names, b.name)
		most = max(most, sum(b.values))
	}
	if most == 0 {
		return ""
	}
	label := room(names, 150)
	var s strings.Builder
	fmt.Fprintf(&s, `<svg class="bars" viewBox="0 0 %.0f %.0f" role="img"><text class="head" x="0" y="16">%s</text><text class="unit" x="0" y="34">%s</text>`,
		width, top+row*float64(len(all))+4, html.EscapeString(upper(title)), html.EscapeString(unit))
	for i, b := range all {
		y := top + row*float64(i)
		fmt.Fprintf(&s, `<text class="name" x="%.0f" y="%.1f">%s</text>`, label-10, y+15, html.EscapeString(b.name))
		x := label
		for part, v := range b.values {
			w := (width - label - right) * v / most
			fmt.Fprintf(&s, `<rect x="%.1f" y="%.1f" width="%.1f" height="18" fill="%s" fill-opacity="%.2f"/>`, x, y+1, w, b.color, 1-.55*float64(part))
			x += w
		}
		fmt.Fprintf(&s, `<text class="value" x="%.1f" y="%.1f">%s</text>`, x+7, y+15, amounts(b.values))
	}
	s.WriteString(`</svg>`)
	return template.HTML(s.String())
}

// room is the width of the column of names.
func room(names []string, least float64) float64 {
	for _, name := range names {
		least = max(least, 7.4*float64(len([]rune(name)))+16)
	}
	return least
}

func amounts(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = thousands(v)
		if v < 100 {
			texts[i] = fmt.Sprintf("%.1f", v)
		}
	}
	return strings.Join(texts, " + ")
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}
