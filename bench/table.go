package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/internal/wrap"
)

// WriteText writes the report for people at a terminal, at most 80 columns
// wide.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "Masters: %s.\nMachine: %s, %d cores, %s, %s.\nLoad before: %s.\n",
		r.Masters, r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Go, r.Machine.Load)
	fmt.Fprintln(w, "Medians over the rounds. A ratio is to the first line, median over the rounds.")
	fmt.Fprintln(w, "Faults (failed, left behind, two at once) are told if there were any, the worst.")
	if len(r.Distances) > 0 {
		r.reachTable().write(w)
		fmt.Fprintln(w, "  R, below, is the p50 of the farthest master of the nearest quorum.")
	}
	r.together(
		func(g *group) { g.table(r).write(w) },
		func(kinds []*group) { r.kindsTable(kinds).write(w) })
}

// group are the results of one workload.
type group struct {
	workload, title string
	results         []*Result
}

func (r *Report) groups() (all []*group) {
	byName := map[string]*group{}
	for _, result := range r.Results {
		g := byName[result.Workload]
		if g == nil {
			g = &group{workload: result.Workload, title: result.Title}
			byName[result.Workload] = g
			all = append(all, g)
		}
		g.results = append(g.results, result)
	}
	return all
}

// idle is the round trip to the first master of a distance while nothing else
// goes on, NaN for none.
func (r *Report) idle(distance string) float64 {
	for _, reach := range r.Distances {
		if reach.Distance == distance {
			return reach.P50
		}
	}
	return math.NaN()
}

// reachTable shows how exactly distances were kept.
func (r *Report) reachTable() *table {
	t := &table{title: "Round trip of a PING through the delay lines, nothing else going on"}
	t.rows = [][]string{{"", "masters", "asked ms", "p50 ms", "p99 ms"}}
	for _, reach := range r.Distances {
		name := reach.Distance
		if reach.Group != "" {
			name += ": " + reach.Group
		}
		t.rows = append(t.rows, []string{name, fmt.Sprint(reach.Masters), show(millis, reach.Asked), show(millis, reach.P50), show(millis, reach.P99)})
	}
	return t
}

// column is a metric as a table shows it.
type column struct {
	head   string
	metric Metric
	format string
}

// millis is the format of microseconds that are shown as milliseconds.
const millis = "ms"

var (
	latencyColumns = []column{{"p50 µs", P50, "%.0f"}, {"p99 µs", P99, "%.0f"}}
	costColumns    = []column{
		{"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}, {"allocs", Allocations, "%.1f"},
	}
)

// columns are those of a workload; unknown ones get what all have.
func columns(workload string) []column {
	switch kindOf(workload) {
	case "pair":
		return concat([]column{{"pairs/s", PerSecond, "%.0f"}}, latencyColumns, costColumns)
	case "handoff":
		return []column{{"handed on/s", PerSecond, "%.0f"}, {"gap p50 µs", P50, "%.0f"}, {"gap p99 µs", P99, "%.0f"},
			{"wait p99 ms", WaitP99, millis}, {"commands", Commands, "%.1f"}, {"switch share", Switches, "%.2f"}, {"fairness", Fairness, "%.2f"}}
	case "held":
		return []column{{"bytes each", BytesHeld, "%.0f"}, {"goroutines", GoroutinesHeld, "%.0f"}, {"core %", CoreShare, "%.1f"},
			{"renewals/s", Renewals, "%.0f"}, {"lost", Lost, "%.0f"}}
	case "orphans":
		return []column{{"pairs", "pairs", "%.0f"}, {"pairs/s", PerSecond, "%.0f"}, {"failed", Failures, "%.0f"}, {"keys left", Leftover, "%.0f"}}
	}
	return []column{{"per s", PerSecond, "%.0f"}, {"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}}
}

// farColumns are those of a workload at a distance, where they differ.
func farColumns(workload string) []column {
	switch kindOf(workload) {
	case "pair":
		return []column{{"pairs/s", PerSecond, "%.0f"}, {"p50 ms", P50, millis}, {"p99 ms", P99, millis}, {"p50 R", P50R, "%.2f"},
			{"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}, {"lines CPU µs", LineCPU, "%.1f"}}
	case "handoff":
		return []column{{"handed on/s", PerSecond, "%.0f"}, {"gap p50 ms", P50, millis}, {"gap p99 ms", P99, millis}, {"p50 R", P50R, "%.2f"}, {"p99 R", P99R, "%.2f"},
			{"commands", Commands, "%.1f"}, {"fairness", Fairness, "%.2f"}}
	}
	return columns(workload)
}

// faults are shown as a line of their own, if there were any.
var faults = []column{
	{"keys left", Leftover, "%.0f"}, {"goroutines left", Leaked, "%.0f"}, {"times two clients had it at once", Violations, "%.0f"},
}

func concat(lists ...[]column) (all []column) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// table is text in rows, the first of which is the head.
type table struct {
	title string
	rows  [][]string
	notes []string
}

func (g *group) table(r *Report) *table {
	t := &table{title: g.title, notes: g.faults()}
	for _, result := range g.results {
		if was, now := r.idle(result.Distance), result.value(PingP50); math.Abs(now-was) > was/20 {
			t.notes = append(t.notes, fmt.Sprintf("%s: meanwhile a PING took %s ms, not %s", result.Subject, show(millis, now), show(millis, was)))
		}
	}
	if kindOf(g.workload) == "degraded" {
		g.states(t)
		return t
	}
	head := []string{""}
	cols := columns(g.workload)
	if g.isFar() {
		cols = farColumns(g.workload)
	}
	cols = g.measured(cols)
	for _, c := range cols {
		head = append(head, c.head)
	}
	ratio := g.ratio()
	compared := len(g.results) > 1 && len(g.measured([]column{ratio})) > 0
	if compared {
		head = append(head, ratio.head)
	}
	t.rows = append(t.rows, head)
	for _, result := range g.results {
		row := []string{result.Subject}
		for _, c := range cols {
			row = append(row, show(c.format, result.value(c.metric)))
		}
		if compared {
			row = append(row, show(ratio.format, r.Ratio(g.workload, result.Subject, g.results[0].Subject, ratio.metric)))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// faults are the notes of all results, and what went wrong.
func (g *group) faults() (notes []string) {
	for _, result := range g.results {
		for _, note := range result.Notes {
			notes = append(notes, result.Subject+": "+note)
		}
		for _, c := range faults {
			if n := result.value(c.metric); n > 0 && kindOf(g.workload) != "orphans" {
				notes = append(notes, result.Subject+": "+show(c.format, n)+" "+c.head)
			}
		}
	}
	return notes
}

// ratio is the column that compares with the first line: by throughput where
// many callers are at work, or those at a distance, else by latency.
func (g *group) ratio() column {
	base, kind := baseOf(g.workload), kindOf(g.workload)
	if kind == "pair" && base != PairsOf(1) || kind == "handoff" && g.isFar() {
		return column{"rate ratio", PerSecond, "%.2fx"}
	}
	return column{"p50 ratio", P50, "%.2fx"}
}

// isFar reports whether the workload is done at a distance.
func (g *group) isFar() bool { return g.workload != baseOf(g.workload) }

// measured leaves out columns without a value.
func (g *group) measured(all []column) (some []column) {
	for _, c := range all {
		for _, result := range g.results {
			if !math.IsNaN(result.value(c.metric)) {
				some = append(some, c)
				break
			}
		}
	}
	return some
}

// states shows a row for each state of the masters.
func (g *group) states(t *table) {
	cols := []column{{"pairs/s", PerSecond, "%.0f"}, {"p50 µs", P50, "%.0f"}, {"p50 ratio", P50Ratio, "%.2fx"}, {"p99 µs", P99, "%.0f"}, {"p99 ratio", P99Ratio, "%.2fx"}}
	if g.isFar() {
		cols[1], cols[3] = column{"p50 ms", P50, millis}, column{"p99 ms", P99, millis}
		cols = append(cols, column{"p50 R", P50R, "%.2f"}, column{"p99 R", P99R, "%.2f"})
	}
	head := []string{""}
	for _, c := range cols {
		head = append(head, c.head)
	}
	t.rows = [][]string{head}
	for _, result := range g.results {
		for _, state := range States {
			row := []string{result.Subject + ", " + state}
			if _, ok := result.Values[named(state, PerSecond)]; !ok {
				if result.Values[named(state, Stuck)] > 0 {
					t.rows = append(t.rows, append(append(row, "stuck"), make([]string, len(cols)-1)...))
				}
				continue
			}
			for _, c := range cols {
				row = append(row, show(c.format, result.value(named(state, c.metric))))
			}
			t.rows = append(t.rows, row)
		}
		if n := result.value(LeftAfter); n > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%s: %.0f goroutines left", result.Subject, n))
		}
	}
}

func show(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if format == millis && v >= 100_000 {
		return fmt.Sprintf("%.1f", v/1000)
	}
	if format == millis {
		return fmt.Sprintf("%.2f", v/1000)
	}
	return fmt.Sprintf(format, v)
}

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.title)
	rows := append(stacked(t.rows[0]), t.rows[1:]...)
	widths := make([]int, len(t.rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + gap)
			} else {
				line.WriteString("  " + gap + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, note := range t.notes {
		fmt.Fprintf(w, "  ! %s\n", wrap.Text(note, 4, 80))
	}
}

// stacked writes the words of each head above each other, the last at the
// bottom, so that columns are as narrow as their values.
func stacked(heads []string) [][]string {
	words, most := make([][]string, len(heads)), 0
	for i, head := range heads {
		words[i] = strings.Fields(head)
		most = max(most, len(words[i]))
	}
	rows := make([][]string, most)
	for r := range rows {
		rows[r] = make([]string, len(heads))
		for i, w := range words {
			if at := r - (most - len(w)); at >= 0 {
				rows[r][i] = w[at]
			}
		}
	}
	return rows
}

// WriteGoals writes the table of goals.
func WriteGoals(w io.Writer, goals []Verdict) { goalsTable(goals).write(w) }

func goalsTable(goals []Verdict) *table {
	t := &table{title: "Goals", rows: [][]string{{"row", "goal", "measured", "met"}}}
	for _, g := range goals {
		t.rows = append(t.rows, []string{g.Row, g.Goal, g.Shown, map[bool]string{true: "yes", false: "NO"}[g.Met]})
	}
	return t
}
