package bench

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/internal/page"
	"github.com/quorumlock/quorumlock/internal/words"
)

// WriteHTML writes the report as one page, with pictures.
func (r *Report) WriteHTML(w io.Writer) error {
	p := &sheet{Report: r, shown: map[string]bool{}}
	p.Title = "What a quorum costs"
	p.Sub = fmt.Sprintf("%s. Masters: %s. %s, %d cores shared by client and servers, %s, %s, load before the run %s. "+
		"Subjects took turns in short rounds; values are medians over the rounds, of faults the worst. Compare within this page: "+
		"absolute times are this machine's. In the distributions the solid line is p50, the dashed one p99.",
		r.Date.Format("2 January 2006, 15:04 MST"), r.Masters, r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Go, r.Machine.Load)
	p.tiles()
	if len(r.Goals) > 0 {
		p.add(page.Section{Title: "Goals", Table: goalsTable(r.Goals).rows})
	}
	if len(r.Distances) > 0 {
		t := r.reachTable()
		p.add(page.Section{Title: "Distances", Table: t.rows, Text: t.title +
			". The masters are on this machine; the lines have a process of their own, whose delay was set so that a PING takes what was asked for."})
	}
	r.together(p.section, p.kinds)
	return p.Write(w)
}

// sheet is the page of a report.
type sheet struct {
	*Report
	page.Page
	shown map[string]bool // distances whose throughput is on the page
}

func (p *sheet) add(s page.Section) { p.Sections = append(p.Sections, s) }

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

func (p *sheet) tiles() {
	for _, d := range p.distances() {
		p.farTiles(d)
	}
	n, one, many := p.quorumSize(), PairsOf(1), PairsOf(64)
	us, pool := on("redlock", n), RedigoPool(64).Name
	v := p.Value(one, us, P50)
	p.tile("Latency, one caller", v, duration(v), "to lock and unlock on %d masters (p50)%s", n, p.plain(one, Redigo().Name))
	p.insteadOfRedsync(n)
	v = p.Ratio(many, us, pool, PerSecond)
	p.tile("Throughput, 64 callers", v, show("%.1fx", v), "%s pairs/s on %d masters, %s over a redigo pool on one",
		thousands(p.Value(many, us, PerSecond)), n, thousands(p.Value(many, pool, PerSecond)))
	v = p.Value(DegradedOf(1), us, named(TwoHung, P50Ratio))
	p.tile("Two of five hung", v, show("%.2fx", v), "the healthy latency: p50 %s, p99 %s",
		duration(p.Value(DegradedOf(1), us, named(TwoHung, P50))), duration(p.Value(DegradedOf(1), us, named(TwoHung, P99))))
	v = p.Value(RelaxedHandoff, us, P50)
	p.tile("Hand-off to a waiter", v, show(millis, v)+" ms", "from Unlock to the next owner on %d masters, %s on one (p50)",
		n, duration(p.Value(RelaxedHandoff, on("redlock", 1), P50)))
	v = p.Value("held", us, CoreShare)
	p.tile("Held and renewed", v, show("%.1f %%", v), "of one core for 10,000 locks, %s bytes each", show("%.0f", p.Value("held", us, BytesHeld)))
}

// tile adds a tile, unless its value was not measured.
func (p *sheet) tile(head string, v float64, big, small string, args ...any) {
	if !math.IsNaN(v) {
		p.Tiles = append(p.Tiles, page.Tile{Head: head, Big: big, Small: fmt.Sprintf(small, args...)})
	}
}

// plain says what the same takes without a library. The core that waits for an answer
// may fall asleep or not, so latencies gather around two values: a ratio to either is
// true only of this machine.
func (p *sheet) plain(workload, floor string) string {
	r := p.Find(workload, floor)
	if r == nil {
		return ""
	}
	modes := r.Latency[""].modes()
	if len(modes) < 2 {
		return fmt.Sprintf("; plain redigo on one: %s", duration(r.value(P50)))
	}
	return fmt.Sprintf("; plain redigo on one: about %s or %s, as the waiting core stays awake or falls asleep",
		duration(modes[0]), duration(modes[len(modes)-1]))
}

// insteadOfRedsync says what a user of redsync would gain.
func (p *sheet) insteadOfRedsync(n int) {
	us, them, many := on("redlock", n), on("redsync", n), PairsOf(64)
	times := p.Ratio(many, us, them, PerSecond)
	small := fmt.Sprintf("the pairs/s of 64 callers on the same %d masters: %s, redsync %s", n,
		thousands(p.Value(many, us, PerSecond)), thousands(p.Value(many, them, PerSecond)))
	if a, b := p.Value(PairsOf(1), us, P50), p.Value(PairsOf(1), them, P50); !math.IsNaN(a + b) {
		small += fmt.Sprintf("; one caller: %s, redsync %s", duration(a), duration(b))
	}
	if p.Value(DegradedOf(1), them, named(OneHung, Stuck)) > 0 {
		small += fmt.Sprintf("; with one master hung a call of redsync's was stuck after %v", stuckAfter)
	}
	p.tile("Instead of redsync", times, show("%.1fx", times), "%s", small)
}

// distances are the names of the measured distances.
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

func (p *sheet) farTiles(distance string) {
	w, us, them := RelaxedHandoff+"@"+distance, on("redlock", p.quorumSize()), RedigoPolling().Name
	v := p.Value(w, us, P50R)
	p.tile("Hand-off"+away(distance), v, show("%.2f R", v), "p99 %.2f R, %.0f handed on/s; plain redigo polling one master: %.2f R, %.0f/s",
		p.Value(w, us, P99R), p.Value(w, us, PerSecond), p.Value(w, them, P50R), p.Value(w, them, PerSecond))
	w = PairsOf(1) + "@" + distance
	v = p.Value(w, us, P50R)
	p.tile("Lock and unlock"+away(distance), v, show("%.2f R", v), "%s, plain redigo on one %s (p50)",
		duration(p.Value(w, us, P50)), duration(p.Value(w, them, P50)))
}

// about says what the chart of a workload shows.
var about = map[string]string{
	"pair": "Each row is the distribution of how long one pair took; the axis is logarithmic.",
	"handoff": "The gap is the time from the moment the holder calls Unlock, while another client waits, until that client's Lock has returned. " +
		"Commands are what all servers together were sent for each acquisition. Fairness is Jain's index: 1 when all clients got the lock equally often.",
	"degraded": "Masters hang (stopped, connections stay open) and die (killed, connections refused) while callers go on. Ratios are to healthy, within the same round. " +
		"A library with a call that has not returned after 3 s is stuck; the states after that are not tried with it.",
}

// section adds a workload to the page. Above the first pairs stands the throughput of
// all of them.
func (p *sheet) section(g *group) {
	t, kind := g.table(p.Report), kindOf(g.workload)
	s := page.Section{Title: upper(g.title), Table: t.rows, Notes: t.notes, Text: about[kind]}
	switch kind {
	case "pair":
		if d := g.results[0].Distance; !p.shown[d] {
			p.shown[d] = true
			p.throughput(d)
		}
		s.Charts = []template.HTML{ridges(g.lanes())}
	case "handoff":
		if g.isFar() {
			s.Text = "R is the round trip of a PING to the farthest master of the nearest quorum. " + s.Text
		}
		s.Charts = []template.HTML{ridges(g.lanes())}
	case "degraded":
		s.Charts = []template.HTML{ridges(g.stateLanes())}
	}
	p.add(s)
}

// throughput is a panel of bars for each number of callers, and one for the CPU
// time behind them.
func (p *sheet) throughput(distance string) {
	s := page.Section{Title: "Throughput by number of masters", Beside: true,
		Text: "Pairs of lock and unlock per second, every caller with a lock of its own. Servers and client share this machine's cores, so each master more takes CPU time from all others."}
	if distance != "" {
		s.Title = "Throughput" + away(distance)
	}
	var last template.HTML
	for _, g := range p.groups() {
		if kindOf(g.workload) != "pair" || g.results[0].Distance != distance {
			continue
		}
		s.Charts = append(s.Charts, bars(strings.TrimPrefix(g.title, "lock and unlock, "), "pairs/s", g.bars(PerSecond)))
		if baseOf(g.workload) == PairsOf(64) {
			last = bars("CPU time of one pair, 64 callers", "µs: client, then all servers", g.bars(ClientCPU, ServerCPU))
		}
	}
	s.Charts = append(s.Charts, last)
	p.add(s)
}

// kinds adds the section about them to the page.
func (p *sheet) kinds(all []*group) {
	t := p.kindsTable(all)
	var latency, throughput []bar
	for _, g := range all {
		latency, throughput = append(latency, g.bars(P50)...), append(throughput, g.bars(PerSecond)...)
	}
	p.add(page.Section{Title: t.title, Text: aboutKinds, Table: t.rows, Notes: t.notes, Beside: true, Charts: []template.HTML{
		bars("latency, one caller", "µs (p50)", latency), bars(fmt.Sprintf("throughput, %d callers", manyCallers), "pairs/s", throughput),
	}})
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
	return words.Thousands(int(math.RoundToEven(v)))
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// name is the subject, in a table of kinds the kind before its library.
func (r *Result) name() string {
	if kindOf(r.Workload) == "kinds" {
		library, _, _ := strings.Cut(r.Subject, " ")
		return r.Title + ", " + library
	}
	return r.Subject
}
