package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what a run has measured.
type Report struct {
	Date    time.Time `json:"date"`
	Machine Machine   `json:"machine"`
	Masters string    `json:"masters"`
	// Distances are those of the workloads that have one.
	Distances []Reach   `json:"distances,omitempty"`
	Results   []*Result `json:"results"`
	Goals     []Verdict `json:"goals,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Load is the system's load average over the minute before the run: above
	// zero, other programs were using the machine.
	Load string `json:"load_before"`
}

// Result is a workload with one subject.
type Result struct {
	Workload string `json:"workload"`
	Title    string `json:"title"`
	Distance string `json:"distance,omitempty"`
	Subject  string `json:"subject"`
	Nodes    int    `json:"nodes"`
	// Values are medians over the rounds, of faults the worst; Rounds is what
	// they are made of.
	Values map[Metric]float64   `json:"values"`
	Rounds []map[Metric]float64 `json:"rounds"`
	// Latency has the distributions over all rounds, by the part of the
	// workload; most have one part, named "".
	Latency map[string]Distribution `json:"latency,omitempty"`
	Notes   []string                `json:"notes,omitempty"`

	merged     map[string]*hdrhistogram.Histogram
	unfinished bool // a trial, that should have been
}

// Distribution is a histogram: how many operations took up to each latency, in
// microseconds, and longer than the one before.
type Distribution struct {
	UpTo  []float64 `json:"up_to_us"`
	Count []int64   `json:"count"`
}

func newReport(m *Masters) *Report {
	r := &Report{Date: time.Now().UTC().Truncate(time.Second), Masters: fmt.Sprintf("%d, %s", m.Len(), m.Kind)}
	r.Machine = Machine{CPU: cpuName(), Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Load: load()}
	return r
}

func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, "\t :\n")
		}
	}
	return "unknown"
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func newResult(w Workload, s Subject) *Result {
	r := &Result{Workload: w.Name, Title: w.Title, Subject: s.Name, Nodes: s.Nodes,
		Values: map[Metric]float64{}, merged: map[string]*hdrhistogram.Histogram{}}
	if w.Distance != nil {
		r.Distance = w.Distance.Name
	}
	return r
}

// add takes a trial into the result. Its values from before a failure
// count.
func (r *Result) add(t *Trial, err error) {
	if err != nil {
		t.Note("%v", err)
		r.unfinished = r.unfinished || isFailure(err)
	}
	for _, note := range t.notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
	r.Rounds = append(r.Rounds, t.values)
	for m := range t.values {
		var all []float64
		for _, round := range r.Rounds {
			if v, ok := round[m]; ok {
				all = append(all, v)
			}
		}
		r.Values[m] = median(all)
		if m.isFault() {
			r.Values[m] = slices.Max(all)
		}
	}
	for part, h := range t.latency {
		if r.merged[part] == nil {
			r.merged[part] = newHistogram()
		}
		r.merged[part].Merge(h)
	}
	r.Latency = map[string]Distribution{}
	for part, h := range r.merged {
		r.Latency[part] = distribution(h)
	}
}

// isFault reports whether a value says that something went wrong. The median
// would hide what went wrong once: of these the worst round counts.
func (m Metric) isFault() bool {
	_, of, ok := strings.Cut(string(m), "/")
	if !ok {
		of = string(m)
	}
	switch Metric(of) {
	case Failures, Leftover, Leaked, LeftAfter, Violations, Stuck, Lost:
		return true
	}
	return false
}

func distribution(h *hdrhistogram.Histogram) (d Distribution) {
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			d.UpTo = append(d.UpTo, micros(time.Duration(bar.To)))
			d.Count = append(d.Count, bar.Count)
		}
	}
	return d
}

// median is NaN for nothing.
func median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Find returns a result, or nil.
func (r *Report) Find(workload, subject string) *Result {
	for _, result := range r.Results {
		if result.Workload == workload && result.Subject == subject {
			return result
		}
	}
	return nil
}

// Value returns a median, NaN if it was not measured.
func (r *Report) Value(workload, subject string, m Metric) float64 {
	result := r.Find(workload, subject)
	if result == nil {
		return math.NaN()
	}
	return result.value(m)
}

func (r *Result) value(m Metric) float64 {
	if v, ok := r.Values[m]; ok {
		return v
	}
	return math.NaN()
}

// Ratio returns the median over the rounds of a value of one subject to that of
// another, NaN if one of them was not measured.
func (r *Report) Ratio(workload, subject, to string, m Metric) float64 {
	a, b := r.Find(workload, subject), r.Find(workload, to)
	if a == nil || b == nil {
		return math.NaN()
	}
	var ratios []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		x, ok := a.Rounds[i][m]
		y, also := b.Rounds[i][m]
		if ok && also && y != 0 {
			ratios = append(ratios, x/y)
		}
	}
	return median(ratios)
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
