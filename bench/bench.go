// Package bench measures what a quorum costs: workloads on one master and on
// several, with this library and with others, on servers that it starts or is
// given.
//
// Absolute times say little on a machine that does other things too. Subjects
// that are compared therefore take turns in short rounds (A B C A B C ...), a
// value is the median over the rounds, and a ratio is the median of the ratios
// within each round.
//
// It is for the command redlab bench, and may change at any time.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Workload is something that is done with locks, and measured.
type Workload struct {
	Name     string // as reports refer to it
	Title    string // as people read it
	Subjects []Subject
	Distance *Distance // of the masters; nil: they are here
	Rounds   int
	Length   time.Duration // of one stretch of measuring; a trial may have several
	Run      func(ctx context.Context, t *Trial) error
}

// Trial is one round of a workload with one subject.
type Trial struct {
	Subject Subject
	Masters []Master // as many as the subject wants
	Length  time.Duration
	Prefix  string // of the names of locks, so that no two trials share one

	distance *Distance
	values   map[Metric]float64
	latency  map[string]*hdrhistogram.Histogram
	notes    []string
}

// Metric names a value. The unit is part of the name.
type Metric string

// The values that most workloads report.
const (
	PerSecond   Metric = "per_s"             // operations, or acquisitions
	P50         Metric = "p50_us"            // latency
	P99         Metric = "p99_us"            //
	ClientCPU   Metric = "client_cpu_us"     // of this process, per operation
	ServerCPU   Metric = "server_cpu_us"     // of all servers together, per operation
	Allocations Metric = "allocs"            // per operation
	Leaked      Metric = "leaked_goroutines" // that are still there after Close
	Leftover    Metric = "keys_left"         // at all servers together, after everything was released
	Failures    Metric = "failed"            // operations that returned an error
	Commands    Metric = "commands"          // sent to the servers, per acquisition
)

// The values of workloads at a distance, see Distance.R.
const (
	P50R    Metric = "p50_rtt"      // latency in round trips
	P99R    Metric = "p99_rtt"      //
	PingP50 Metric = "ping_p50_us"  // a round trip while the workload goes on
	LineCPU Metric = "lines_cpu_us" // of the delay lines, per operation
)

// Set records a value.
func (t *Trial) Set(m Metric, v float64) { t.values[m] = v }

// Note records what a reader of the numbers must know.
func (t *Trial) Note(format string, args ...any) {
	note := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	if !slices.Contains(t.notes, note) {
		t.notes = append(t.notes, note)
	}
}

// URLs returns the addresses at which the subject reaches the trial's masters.
// The trial itself looks at them from close by.
func (t *Trial) URLs() []string {
	if t.distance != nil {
		return t.distance.urls[:len(t.Masters)]
	}
	urls := make([]string, len(t.Masters))
	for i, m := range t.Masters {
		urls[i] = m.URL()
	}
	return urls
}

// Plan is a run of several workloads.
type Plan struct {
	Masters   *Masters
	Workloads []Workload
	// Progress, unless nil, is called before each trial with how many are done.
	Progress func(done int, what string)
}

// Trials is how many trials the plan has.
func (p Plan) Trials() (n int) {
	for _, w := range p.Workloads {
		n += w.Rounds * len(w.Subjects)
	}
	return n
}

// Run carries out the plan. A trial that fails is reported as a problem of its
// result; Run itself fails only when ctx ends or a workload wants more masters
// than there are.
func (p Plan) Run(ctx context.Context) (*Report, error) {
	report := newReport(p.Masters)
	done := 0
	for i, w := range p.Workloads {
		if w.Distance != nil && (i == 0 || w.Distance != p.Workloads[i-1].Distance) {
			reaches, err := p.Masters.measure(w.Distance)
			if err != nil {
				return nil, err
			}
			report.Distances = append(report.Distances, reaches...)
		}
		results := make([]*Result, len(w.Subjects))
		for i, s := range w.Subjects {
			if s.Nodes > len(p.Masters.all) {
				return nil, fmt.Errorf("bench: %s with %s: wants %d masters, there are %d", w.Name, s.Name, s.Nodes, len(p.Masters.all))
			}
			results[i] = newResult(w, s)
		}
		for round := range w.Rounds {
			for i := range w.Subjects {
				// Every subject is first in some round: the order of turns
				// matters, if only a little.
				i := (i + round) % len(w.Subjects)
				s := w.Subjects[i]
				if p.Progress != nil {
					p.Progress(done, w.Title+": "+s.Name)
				}
				results[i].add(p.trial(ctx, w, s))
				if err := ctx.Err(); err != nil {
					return report, err
				}
				done++
			}
		}
		report.Results = append(report.Results, results...)
	}
	if p.Progress != nil {
		p.Progress(done, "done")
	}
	return report, nil
}

func (p Plan) trial(ctx context.Context, w Workload, s Subject) (*Trial, error) {
	t := &Trial{
		Subject:  s,
		Masters:  p.Masters.all[:s.Nodes],
		Length:   w.Length,
		Prefix:   "bench:" + strconv.FormatInt(time.Now().UnixMicro(), 36) + ":",
		distance: w.Distance,
		values:   map[Metric]float64{},
		latency:  map[string]*hdrhistogram.Histogram{},
	}
	ctx, cancel := context.WithTimeout(ctx, patience+2*w.Length)
	defer cancel()
	err := w.Run(ctx, t)
	t.inRoundTrips()
	return t, err
}

// patience is how much longer a trial may take than it measures: to connect,
// warm up and clean up on a busy machine. Beyond it every call is cancelled and
// fails.
const patience = 20 * time.Second

// errStuck is a trial that had to be given up.
var errStuck = errors.New("did not come back")
