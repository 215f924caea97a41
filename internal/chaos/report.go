package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a run that was judged.
type Report struct {
	Config
	Start, Healed     time.Duration // of the faults and of the calm
	Dismissed, Closed time.Duration // the clients: were told to end, and had ended
	Faults            []Done
	History           *History
	LateWrites        map[string]int // by register
	Findings          []Finding
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// Count returns how many findings of a kind there are.
func (r *Report) Count(check Check) (count int) {
	for _, f := range r.Findings {
		if f.Check == check {
			count++
		}
	}
	return count
}

// Summary is what a workload came to.
type Summary struct {
	Workload    string
	Holds, Lost int
	Held        time.Duration // in all, all locks together
	Updates     int
	LateWrites  int           // that only a fencing token could have stopped
	Drought     time.Duration // the longest time without a holder, during the faults
	Recovery    time.Duration // the longest time without a holder after them
}

// Summaries returns one for each workload that holds locks.
func (r *Report) Summaries() (all []Summary) {
	for _, w := range r.Workloads {
		if len(w.Locks) == 0 {
			continue
		}
		s := Summary{Workload: w.Name}
		for _, lock := range w.Locks {
			s.Drought = max(s.Drought, r.drought(lock))
			s.Recovery = max(s.Recovery, r.recovery(lock))
			for _, span := range r.History.of(lock) {
				s.Holds++
				s.Held += span.To - span.From
				if span.Lost != "" {
					s.Lost++
				}
			}
		}
		for _, register := range w.registers() {
			s.LateWrites += r.LateWrites[register]
		}
		for _, u := range r.History.Updates {
			if slices.Contains(w.registers(), u.Register) {
				s.Updates++
			}
		}
		all = append(all, s)
	}
	return all
}

// WriteText writes tables that fit a terminal of 80 columns, and the findings.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %v of faults on %d masters and %d clients (TTL %v and %v)\n\n",
		r.Seed, (r.Healed - r.Start).Round(time.Second), r.Masters, r.Clients, shortTTL, longTTL)
	r.writeFaults(w)
	r.writeWorkloads(w)
	r.writeChecks(w)
}

func (r *Report) writeFaults(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tof\twhat\ttimes\tin all")
	for _, k := range r.Kinds {
		times, lasted := 0, time.Duration(0)
		for _, d := range r.Faults {
			if d.Kind == k {
				times++
				lasted += d.Until - d.From
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%v\n", k.Name, k.component, k.Does, times, lasted.Round(100*time.Millisecond))
	}
	t.Flush()
	fmt.Fprintln(w)
}

func (r *Report) writeWorkloads(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\theld\ttimes\tlost\tupdates\tlate writes\tlongest gap\trecovered in\t")
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	for _, s := range r.Summaries() {
		fmt.Fprintf(t, "%s\t%v\t%d\t%d\t%d\t%d\t%v\t%v\t\n", s.Workload, s.Held.Round(time.Second), s.Holds, s.Lost,
			s.Updates, s.LateWrites, round(s.Drought), round(s.Recovery))
	}
	t.Flush()
	fmt.Fprintln(w)
	for _, one := range r.Workloads {
		if one.Tell != nil {
			fmt.Fprintf(w, "%s: %s\n", one.Name, one.Tell(r, one))
		}
	}
	losses, excused := r.History.Lateness()
	fmt.Fprintf(w, "%d losses announced, %d of them late because the process stood still\n", losses, excused)
	fmt.Fprintf(w, "%d writes refused, because their holder had been overtaken\n", r.History.Refused)
	fmt.Fprintf(w, "not acquired: %s\n", counts(r.History.Failures))
	fmt.Fprintf(w, "unlocked: %s\n\n", counts(r.History.Unlocks))
}

// counts lists the most frequent first.
func counts(m map[string]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return m[b] - m[a] })
	parts := make([]string, len(names))
	for i, name := range names {
		label := name
		if label == "" {
			label = "ok"
		}
		parts[i] = fmt.Sprintf("%s %d", label, m[name])
	}
	if len(parts) == 0 {
		return "never"
	}
	return strings.Join(parts, ", ")
}

func (r *Report) writeChecks(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, check := range Checks {
		fmt.Fprintf(t, "%s\t%d\n", check, r.Count(check))
	}
	t.Flush()
	const most = 20
	for i, f := range r.Findings {
		if i == most {
			fmt.Fprintf(w, "... and %d more\n", len(r.Findings)-most)
			break
		}
		fmt.Fprintf(w, "%s  %s %s: %s\n", r.History.at(f.At), f.Check, f.Lock, f.Text)
	}
	for _, d := range r.Faults {
		if d.Err != nil {
			fmt.Fprintf(w, "%8.3fs  %s %v could not be done: %v\n", d.From.Seconds(), d.Kind.Name, d.Target, d.Err)
		}
	}
}

// WriteLog writes the faults as they happened.
func (r *Report) WriteLog(w io.Writer) {
	for _, d := range r.Faults {
		fmt.Fprintf(w, "%9.3fs  %9.3fs  %-10s  %s %s\n", d.From.Seconds(), d.Until.Seconds(), d.Kind.Name, d.Kind.component, r.target(d))
	}
}

// target names what a fault has hit.
func (r *Report) target(d Done) string {
	n := d.Target
	if d.Kind.component == aLink {
		return fmt.Sprintf("client %d - master %d", n/r.Masters, n%r.Masters)
	}
	return fmt.Sprint(n)
}
