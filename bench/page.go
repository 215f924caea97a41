package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: no network,
// no other file.
func (r *Report) WriteHTML(w io.Writer) error {
	p := &page{Report: r, When: r.Date.Format("2 January 2006, 15:04 MST"), shown: map[string]bool{}}
	p.tiles()
	p.reach()
	r.together(p.section, p.kinds)
	return pageTemplate.Execute(w, p)
}

// page is what the template shows.
type page struct {
	*Report
	When     string
	Tiles    []tile
	Sections []section

	shown map[string]bool // distances whose throughput is there
}

// tile is one of the answers at the top.
type tile struct{ Head, Big, Small string }

// section is one workload, or several of a kind.
type section struct {
	Title, Text string
	Charts      []template.HTML
	Wide        bool // charts under each other rather than side by side
	Table       [][]string
	Notes       []string
}

// quorumSize is the number of masters that the page compares with one: five, or
// the next best.
func (r *Report) quorumSize() (n int) {
	for _, result := range r.Results {
		if strings.HasPrefix(result.Subject, "redlock ") && result.Nodes <= 5 {
			n = max(n, result.Nodes)
		}
	}
	return n
}

func (p *page) tiles() {
	for _, d := range p.distances() {
		p.farTiles(d)
	}
	n := p.quorumSize()
	us, floor, pool := on("redlock", n), Redigo().Name, RedigoPool(64).Name
	add := func(head string, v float64, format, small string, args ...any) {
		if !math.IsNaN(v) {
			p.Tiles = append(p.Tiles, tile{head, fmt.Sprintf(format, v), fmt.Sprintf(small, args...)})
		}
	}
	one, many := PairsOf(1), PairsOf(64)
	if v := p.Value(one, us, P50); !math.IsNaN(v) {
		p.Tiles = append(p.Tiles, tile{"Latency, one caller", duration(v),
			fmt.Sprintf("to lock and unlock on %d masters (p50)%s", n, p.plain(one, floor))})
	}
	p.insteadOfRedsync(n)
	add("Throughput, 64 callers", p.Ratio(many, us, pool, PerSecond), "%.1fx",
		"%s pairs/s on %d masters, %s over a redigo pool on one", thousands(p.Value(many, us, PerSecond)), n, thousands(p.Value(many, pool, PerSecond)))
	add("Two of five hung", p.Value(DegradedOf(1), us, named(TwoHung, P50Ratio)), "%.2fx",
		"the healthy latency: p50 %s, p99 %s", duration(p.Value(DegradedOf(1), us, named(TwoHung, P50))), duration(p.Value(DegradedOf(1), us, named(TwoHung, P99))))
	add("Hand-off to a waiter", p.Value(RelaxedHandoff, us, P50)/1000, "%.2f ms",
		"from Unlock to the next owner on %d masters, %s on one (p50)", n, duration(p.Value(RelaxedHandoff, on("redlock", 1), P50)))
	add("Held and renewed", p.Value("held", us, CoreShare), "%.1f %%",
		"of one core for 10,000 locks, %s bytes each", show("%.0f", p.Value("held", us, BytesHeld)))
}

// plain says what the same takes without a library. A core that waits for the
// answer may fall asleep or not, which makes two modes of it: the ratio to either
// is true only of this machine.
func (p *page) plain(workload, floor string) string {
	r := p.Find(workload, floor)
	if r == nil {
		return ""
	}
	switch modes := r.Latency[""].modes(); len(modes) {
	case 0, 1:
		return fmt.Sprintf("; plain redigo on one: %s", duration(r.value(P50)))
	default:
		return fmt.Sprintf("; plain redigo on one: mostly about %s or %s, as the core that waits stays awake or falls asleep",
			duration(modes[0]), duration(modes[len(modes)-1]))
	}
}

// insteadOfRedsync says what a user of redsync would gain.
func (p *page) insteadOfRedsync(n int) {
	us, them, many := on("redlock", n), on("redsync", n), PairsOf(64)
	times := p.Ratio(many, us, them, PerSecond)
	if math.IsNaN(times) {
		return
	}
	small := fmt.Sprintf("the pairs/s of 64 callers on the same %d masters: %s, redsync %s", n,
		thousands(p.Value(many, us, PerSecond)), thousands(p.Value(many, them, PerSecond)))
	if a, b := p.Value(PairsOf(1), us, P50), p.Value(PairsOf(1), them, P50); !math.IsNaN(a) && !math.IsNaN(b) {
		small += fmt.Sprintf("; one caller: %s, redsync %s", duration(a), duration(b))
	}
	if p.Value(DegradedOf(1), them, named(OneHung, Stuck)) > 0 {
		small += fmt.Sprintf("; with one master hung a call of redsync's was stuck after %v", stuckAfter)
	}
	p.Tiles = append(p.Tiles, tile{"Instead of redsync", fmt.Sprintf("%.1fx", times), small})
}

// distances are the names of those that were measured.
func (r *Report) distances() (names []string) {
	for _, reach := range r.Distances {
		if !slices.Contains(names, reach.Distance) {
			names = append(names, reach.Distance)
		}
	}
	return names
}

// isEven reports whether all masters are equally far away.
func (r *Report) isEven(distance string) bool {
	return !slices.ContainsFunc(r.Distances, func(reach Reach) bool { return reach.Distance == distance && reach.Group != "" })
}

func (p *page) farTiles(distance string) {
	w, us, them := RelaxedHandoff+"@"+distance, on("redlock", p.quorumSize()), RedigoPolling().Name
	if v := p.Value(w, us, P50R); !math.IsNaN(v) {
		p.Tiles = append(p.Tiles, tile{"Hand-off" + away(distance), fmt.Sprintf("%.2f R", v),
			fmt.Sprintf("p99 %.2f R, %.0f handed on/s; plain redigo polling one master: %.2f R, %.0f/s",
				p.Value(w, us, P99R), p.Value(w, us, PerSecond), p.Value(w, them, P50R), p.Value(w, them, PerSecond))})
	}
	w = PairsOf(1) + "@" + distance
	if v := p.Value(w, us, P50R); !math.IsNaN(v) {
		p.Tiles = append(p.Tiles, tile{"Lock and unlock" + away(distance), fmt.Sprintf("%.2f R", v),
			fmt.Sprintf("%s, plain redigo on one %s (p50)", duration(p.Value(w, us, P50)), duration(p.Value(w, them, P50)))})
	}
}

// reach adds how exactly the distances were kept.
func (p *page) reach() {
	if len(p.Distances) == 0 {
		return
	}
	t := p.reachTable()
	p.Sections = append(p.Sections, section{Title: "Distances", Table: t.rows, Text: t.title +
		". The masters are on this machine; the lines have a process of their own, whose length was set so that a PING takes what was asked for."})
}

// section adds a workload to the page. Pairs of all kinds go into two sections,
// one for latency and one for throughput.
func (p *page) section(g *group) {
	t := g.table(p.Report)
	s := section{Title: upper(g.title), Table: t.rows, Notes: t.notes}
	switch kindOf(g.workload) {
	case "pair":
		if d := g.results[0].Distance; !p.shown[d] {
			p.shown[d] = true
			p.throughput(d)
		}
		s.Text = "Each row is the distribution of how long one pair took; the axis is logarithmic."
		s.Charts = []template.HTML{ridges(g.lanes())}
	case "handoff":
		if g.isFar() {
			s.Text = "R is the round trip of a PING to the farthest master of the nearest quorum. "
		}
		s.Text += "The gap is the time from the moment the holder calls Unlock, while somebody waits, until another client's Lock has returned. " +
			"Commands are what all servers together were sent for each acquisition. Fairness is Jain's index: 1 when all clients got the lock equally often."
		s.Charts = []template.HTML{ridges(g.lanes())}
	case "degraded":
		s.Text = "Masters hang (stopped, connections stay open) and die (killed, connections refused) while callers go on. Ratios are to healthy, within the same round. " +
			"A library with a call that has not returned after 3 s is stuck; the states after that are not tried with it."
		s.Charts = []template.HTML{ridges(g.stateLanes())}
	}
	s.Wide = true
	p.Sections = append(p.Sections, s)
}

// throughput is a panel of bars for each number of callers, and one for the CPU
// time behind them.
func (p *page) throughput(distance string) {
	s := section{Title: "Throughput by number of masters",
		Text: "Pairs of lock and unlock per second, every caller with a lock of its own. Servers and client share this machine's cores, so each master more takes CPU time from all others."}
	if distance != "" {
		s.Title = "Throughput" + away(distance)
	}
	var last *group
	for _, g := range p.groups() {
		if kindOf(g.workload) != "pair" || g.results[0].Distance != distance {
			continue
		}
		s.Charts = append(s.Charts, bars(strings.TrimPrefix(g.title, "lock and unlock, "), "pairs/s", g.bars(PerSecond)))
		if baseOf(g.workload) == PairsOf(64) {
			last = g
		}
	}
	if last != nil {
		s.Charts = append(s.Charts, bars("CPU time of one pair, 64 callers", "µs: client, then all servers", last.bars(ClientCPU, ServerCPU)))
	}
	p.Sections = append(p.Sections, s)
}

// lane is one row of a ridge plot.
type lane struct {
	name, color string
	d           Distribution
	p50, p99    float64
	note        string
	stuck       bool // it has no latencies: a call did not return
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

// bar is one row of a bar chart, with one or two values on top of each other.
type bar struct {
	name, color string
	values      []float64
}

func (g *group) bars(metrics ...Metric) (all []bar) {
	for _, r := range g.results {
		b := bar{name: r.Subject, color: color(r.Subject)}
		for _, m := range metrics {
			if v := r.value(m); !math.IsNaN(v) {
				b.values = append(b.values, v)
			}
		}
		all = append(all, b)
	}
	return all
}

// The colours of the libraries; the same everywhere.
var palette = []struct{ library, color string }{
	{"redlock", "#2563eb"}, {"redigo", "#64748b"}, {"redsync", "#d97706"}, {"redisson", "#b45309"},
	{"rueidislock", "#be185d"}, {"redislock", "#7c3aed"}, {"etcd", "#0f766e"}, {"zookeeper", "#4d7c0f"},
}

func color(subject string) string {
	for _, p := range palette {
		if strings.HasPrefix(subject, p.library) {
			return p.color
		}
	}
	return "#334155"
}

// duration writes microseconds with the unit that fits.
func duration(us float64) string {
	switch {
	case math.IsNaN(us):
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 10_000:
		return fmt.Sprintf("%.1f ms", us/1000)
	case us < 1_000_000:
		return fmt.Sprintf("%.0f ms", us/1000)
	}
	return fmt.Sprintf("%.1f s", us/1_000_000)
}

// thousands writes 12,345.
func thousands(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

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
		// mostly in its bin and a little in those beside it.
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
