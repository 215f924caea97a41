package soak

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Report is what a load came to.
type Report struct {
	Load     Load
	Took     time.Duration
	Samples  []Sample
	Figures  []Figure
	Findings []string // what must not be
}

// Figure is a number with a name.
type Figure struct {
	Name, Value string
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

func (t *trial) figure(name, format string, args ...any) {
	t.report.Figures = append(t.report.Figures, Figure{name, fmt.Sprintf(format, args...)})
}

func (t *trial) found(format string, args ...any) {
	t.report.Findings = append(t.report.Findings, fmt.Sprintf(format, args...))
}

// flat finds what has grown between two samples by more than a tenth, and by more
// than comes and goes by itself.
func (t *trial) flat(before, after Sample) {
	for _, g := range []struct {
		name          string
		before, after uint64
		slack         uint64
	}{
		{"heap", before.Heap, after.Heap, 8 << 20},
		{"resident memory", before.Resident, after.Resident, 64 << 20},
		{"goroutines", uint64(before.Goroutines), uint64(after.Goroutines), 10},
		{"open files", uint64(before.Descriptors), uint64(after.Descriptors), 10},
		{"connections", uint64(before.Connections), uint64(after.Connections), 2 * masters},
	} {
		if g.after > g.before+g.before/10+g.slack {
			t.found("%s grew from %d (%s) to %d (%s)", g.name, g.before, before.When, g.after, after.When)
		}
	}
}

// noKeys finds keys that should be gone.
func (t *trial) noKeys(s Sample) {
	if s.Keys != 0 {
		t.found("%d keys are left", s.Keys)
	}
}

// WriteText writes tables of at most 80 columns.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %s (%v)\n\n", r.Load.Name, r.Load.Does, r.Took.Round(time.Second))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\theap\tresident\tgoroutines\tfiles\tconnections\tkeys\t")
	for _, s := range r.Samples {
		fmt.Fprintf(t, "%s\t%.1f MB\t%.1f MB\t%d\t%d\t%d\t%d\t\n", s.When, float64(s.Heap)/1e6, float64(s.Resident)/1e6,
			s.Goroutines, s.Descriptors, s.Connections, s.Keys)
	}
	t.Flush()
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Value)
	}
	t.Flush()
	for _, f := range r.Findings {
		fmt.Fprintln(w, "FOUND:", f)
	}
	fmt.Fprintln(w)
}
