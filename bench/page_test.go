package bench

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// drawn is a distribution of operations that gather around some latencies.
func drawn(around ...float64) Distribution {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHistogram()
	for i := range 20_000 {
		us := around[i%len(around)] * math.Exp(0.08*random.NormFloat64())
		record(h, time.Duration(us*float64(time.Microsecond)))
	}
	return distribution(h)
}

func TestModes_are_where_operations_gather(t *testing.T) {
	for _, test := range []struct{ around, want []float64 }{
		{[]float64{21}, []float64{21}},
		{[]float64{21, 160}, []float64{21, 160}},
		{[]float64{160, 21, 21, 21}, []float64{21, 160}},
		{[]float64{100, 105}, []float64{102}},
	} {
		got := drawn(test.around...).modes()
		if len(got) != len(test.want) {
			t.Errorf("around %v: modes %v, want %v", test.around, got, test.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]/test.want[i]-1) > 0.15 {
				t.Errorf("around %v: modes %v, want %v", test.around, got, test.want)
			}
		}
	}
	if got := (Distribution{}).modes(); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

func TestPage_shows_both_modes_of_plain_redigo_and_what_redsync_would_do(t *testing.T) {
	measured := func(workload string, s Subject, d Distribution, values map[Metric]float64) *Result {
		return &Result{Workload: workload, Title: workload, Subject: s.Name, Nodes: s.Nodes, Values: values,
			Rounds: []map[Metric]float64{values}, Latency: map[string]Distribution{"": d, Healthy: d}}
	}
	r := &Report{Results: []*Result{
		measured(PairsOf(1), Redigo(), drawn(21, 160), map[Metric]float64{P50: 24}),
		measured(PairsOf(1), patient(5), drawn(90), map[Metric]float64{P50: 90}),
		measured(PairsOf(1), Redsync(5, 64), drawn(300), map[Metric]float64{P50: 300}),
		measured(PairsOf(64), patient(5), drawn(900), map[Metric]float64{PerSecond: 60_000}),
		measured(PairsOf(64), Redsync(5, 64), drawn(9000), map[Metric]float64{PerSecond: 6_000}),
		measured(DegradedOf(1), patient(5), drawn(90), map[Metric]float64{named(Healthy, P50): 90}),
		measured(DegradedOf(1), Redsync(5, 64), drawn(300), map[Metric]float64{named(Healthy, P50): 300, named(OneHung, Stuck): 1}),
	}}
	var page strings.Builder
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Latency, one caller</b><strong>90 µs", "about 21 µs or 1", "stays awake or falls asleep",
		"Instead of redsync</b><strong>10.0x", "60,000, redsync 6,000", "one caller: 90 µs, redsync 300 µs", "redsync&#39;s was stuck after 3s",
		"redsync on 5, one hung", ">stuck, &gt; 3s<", `class="ridges"`,
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		_, tiles, _ := strings.Cut(page.String(), `<div class="tiles">`)
		tiles, _, _ = strings.Cut(tiles, "\n")
		t.Log(tiles)
	}
}

// A run compares with redsync also where masters hang.
func TestWorkloads_have_redsync_with_hung_masters(t *testing.T) {
	for _, w := range Workloads(Normal, &Masters{all: make([]Master, 5)}) {
		if kindOf(w.Name) == "degraded" && (len(w.Subjects) != 2 || w.Subjects[1].Name != Redsync(5, 64).Name) {
			t.Errorf("%s: subjects %v", w.Name, w.Subjects)
		}
	}
}
