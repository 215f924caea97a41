package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// WriteText writes the report for people at a terminal, at most 100 columns
// wide.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "Masters: %s. Machine: %s, %d cores, %s, %s, load before %s.\n",
		r.Masters, r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Go, r.Machine.Load)
	fmt.Fprintln(w, "Medians over the rounds, of faults the worst. A ratio is to the first line, the median over the rounds.")
	for _, g := range r.groups() {
		g.table(r).write(w)
	}
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

// column is a metric as a table shows it.
type column struct {
	head   string
	metric Metric
	format string
}

var (
	latencyColumns = []column{{"p50 µs", P50, "%.0f"}, {"p99 µs", P99, "%.0f"}}
	costColumns    = []column{
		{"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}, {"allocs", Allocations, "%.1f"},
	}
	healthColumns = []column{{"failed", Failures, "%.0f"}, {"keys left", Leftover, "%.0f"}, {"goroutines left", Leaked, "%.0f"}}
)

// columns are those of a workload; unknown ones get everything.
func columns(workload string) []column {
	switch kind, _, _ := strings.Cut(workload, "/"); kind {
	case "pair":
		return concat([]column{{"pairs/s", PerSecond, "%.0f"}}, latencyColumns, costColumns, healthColumns)
	case "extend":
		return concat([]column{{"extends/s", PerSecond, "%.0f"}}, latencyColumns, costColumns)
	case "handoff":
		return concat([]column{{"handed on/s", PerSecond, "%.0f"}, {"gap p50 µs", P50, "%.0f"}, {"gap p99 µs", P99, "%.0f"},
			{"wait p99 µs", WaitP99, "%.0f"}, {"commands", Commands, "%.1f"}, {"switches", Switches, "%.2f"}, {"fairness", Fairness, "%.2f"},
			{"two at once", Violations, "%.0f"}}, healthColumns)
	case "floor":
		return concat([]column{{"pairs/s", PerSecond, "%.0f"}}, latencyColumns, []column{{"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}})
	case "held":
		return []column{{"bytes each", BytesHeld, "%.0f"}, {"goroutines", GoroutinesHeld, "%.0f"}, {"% of a core", CoreShare, "%.1f"},
			{"renewals/s", Renewals, "%.0f"}, {"lost", Lost, "%.0f"}, {"goroutines left", Leaked, "%.0f"}}
	case "simulator":
		return []column{{"schedules/s", PerSecond, "%.0f"}, {"per core second", PerCore, "%.0f"}}
	case "orphans":
		return concat([]column{{"pairs", "pairs", "%.0f"}, {"pairs/s", PerSecond, "%.0f"}}, healthColumns)
	}
	return []column{{"per s", PerSecond, "%.0f"}, {"client CPU µs", ClientCPU, "%.1f"}, {"servers CPU µs", ServerCPU, "%.1f"}}
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
	t := &table{title: g.title}
	for _, result := range g.results {
		for _, note := range result.Notes {
			t.notes = append(t.notes, result.Subject+": "+note)
		}
	}
	if strings.HasPrefix(g.workload, "degraded/") {
		g.states(t)
		return t
	}
	head := []string{""}
	cols := g.measured(columns(g.workload))
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

// ratio is the column that compares with the first line: by throughput where
// many callers are at work, else by latency.
func (g *group) ratio() column {
	if kind, callers, _ := strings.Cut(g.workload, "/"); kind == "limit" || kind == "pair" && callers != "1" {
		return column{"per s ratio", PerSecond, "%.2fx"}
	}
	return column{"p50 ratio", P50, "%.2fx"}
}

// measured leaves out columns that nobody has a value for.
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
	t.rows = [][]string{{"", "pairs/s", "p50 µs", "p50 ratio", "p99 µs", "p99 ratio", "failed", "goroutines left"}}
	for _, result := range g.results {
		for _, state := range States {
			if _, ok := result.Values[named(state, PerSecond)]; !ok {
				if result.Values[named(state, Stuck)] > 0 {
					t.rows = append(t.rows, []string{result.Subject + ", " + state, "stuck", "", "", "", "", "", ""})
				}
				continue
			}
			row := []string{result.Subject + ", " + state}
			for _, c := range []column{{"", PerSecond, "%.0f"}, {"", P50, "%.0f"}, {"", P50Ratio, "%.2fx"}, {"", P99, "%.0f"}, {"", P99Ratio, "%.2fx"}, {"", Failures, "%.0f"}} {
				row = append(row, show(c.format, result.value(named(state, c.metric))))
			}
			t.rows = append(t.rows, append(row, show("%.0f", result.value(LeftAfter))))
		}
	}
}

func show(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.title)
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
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
		fmt.Fprintf(w, "  ! %s\n", note)
	}
}

// WriteGoals writes the table of goals.
func WriteGoals(w io.Writer, goals []Verdict) {
	t := &table{title: "Goals", rows: [][]string{{"row", "goal", "measured", "met?"}}}
	for _, g := range goals {
		t.rows = append(t.rows, []string{g.Row, g.Goal, g.Shown, map[bool]string{true: "yes", false: "NO"}[g.Met]})
	}
	t.write(w)
}
