package chaos

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteTotal writes a line for each run, and their sum.
func WriteTotal(w io.Writer, reports []*Report) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "seed\ttime\tfaults\theld\tlost\tupdates\tlate writes\tfindings\t")
	row := func(name any, lasted time.Duration, numbers [6]int) {
		fmt.Fprintf(table, "%v\t%v\t", name, lasted.Round(time.Second))
		for _, n := range numbers {
			fmt.Fprintf(table, "%d\t", n)
		}
		fmt.Fprintln(table)
	}
	var lasted time.Duration
	var sum [6]int
	for _, r := range reports {
		one := [6]int{0: len(r.Faults), 5: len(r.Findings)}
		for _, s := range r.Summaries() {
			for i, n := range []int{s.Holds, s.Lost, s.Updates, s.LateWrites} {
				one[i+1] += n
			}
		}
		for i, n := range one {
			sum[i] += n
		}
		lasted += r.Healed - r.Start
		row(r.Seed, r.Healed-r.Start, one)
	}
	row("all", lasted, sum)
	table.Flush()
}
