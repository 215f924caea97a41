package chaos

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Total adds up runs.
type Total struct {
	reports []*Report
}

// Add takes a run in.
func (t *Total) Add(r *Report) { t.reports = append(t.reports, r) }

// OK reports whether nothing was found in any run.
func (t *Total) OK() bool {
	for _, r := range t.reports {
		if !r.OK() {
			return false
		}
	}
	return true
}

// WriteText writes a line for each run, and their sum.
func (t *Total) WriteText(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "seed\ttime\tfaults\theld\tlost\tupdates\tlate writes\tfindings\t")
	var sum row
	for _, r := range t.reports {
		one := r.row()
		one.write(table, fmt.Sprint(r.Seed))
		sum.add(one)
	}
	sum.write(table, "all")
	table.Flush()
}

// row is a run in numbers.
type row struct {
	lasted                                             time.Duration
	faults, holds, lost, updates, lateWrites, findings int
}

func (r *Report) row() row {
	one := row{lasted: r.Healed - r.Start, faults: len(r.Faults), findings: len(r.Findings)}
	for _, s := range r.Summaries() {
		one.holds += s.Holds
		one.lost += s.Lost
		one.updates += s.Updates
		one.lateWrites += s.LateWrites
	}
	return one
}

func (r *row) add(o row) {
	r.lasted += o.lasted
	r.faults += o.faults
	r.holds += o.holds
	r.lost += o.lost
	r.updates += o.updates
	r.lateWrites += o.lateWrites
	r.findings += o.findings
}

func (r row) write(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%v\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, r.lasted.Round(time.Second), r.faults, r.holds, r.lost, r.updates, r.lateWrites, r.findings)
}
