package bench

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestParse_distances(t *testing.T) {
	half, twenty := 500*time.Microsecond, 20*time.Millisecond
	for text, want := range map[string][]*Distance{
		"1ms":                     {{Name: "1ms", Groups: []Group{{RTT: time.Millisecond}}}},
		"0.5ms,20ms":              {{Name: "500µs", Groups: []Group{{RTT: half}}}, {Name: "20ms", Groups: []Group{{RTT: twenty}}}},
		"near=0.5ms*3,far=20ms*2": {{Name: "near+far", Groups: []Group{{"near", half, 3}, {"far", twenty, 2}}}},
	} {
		if got, err := ParseDistances(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, named := range map[string]string{
		"":                "must be a round trip from 200µs to 1s",
		"5":               `"5": must be a round trip`,
		"1ms,2s":          `"2s": must be a round trip`,
		"near=1ms":        "a group is name=round trip*masters",
		"1ms*3":           "a group is name=round trip*masters",
		"near=1ms*0":      `"0" is no number of masters`,
		"near=1ms*3,10ms": `"10ms": a group is`,
	} {
		if _, err := ParseDistances(text); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: error %v, want one that says: %s", text, err, named)
		}
	}
}

func distance(t *testing.T, text string) *Distance {
	t.Helper()
	all, err := ParseDistances(text)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestDistance_R_is_the_farthest_master_of_the_nearest_quorum(t *testing.T) {
	d := &Distance{rtt: []time.Duration{1, 20, 3, 20, 2}}
	if one, five := d.R(1), d.R(5); one != 1 || five != 3 {
		t.Errorf("R of one master %v and of five %v, want 1 and 3", one, five)
	}
}

// A round trip through a line is never shorter than the line: only what the
// machine adds to it is taken off.
func TestPlan_measures_at_a_distance(t *testing.T) {
	masters := realMasters(t, 5)
	if err := masters.Extend("serve-lines"); err != nil {
		t.Fatal(err)
	}
	d := distance(t, "near=2ms*3,far=10ms*2")
	patient := Redlock(5, redlock.WithNodeTimeout(TTL/2)) // also on a machine that stands still
	report, err := Plan{Masters: masters, Workloads: []Workload{
		Pairs(1).With(1, 100*time.Millisecond, RedigoPolling(), patient).At(d),
		Handoff(RelaxedHandoff, "test", Contention{Clients: 3, Section: time.Millisecond}).With(1, time.Second, patient, RedsyncTuned(5, 3, time.Millisecond)).At(d),
		Pairs(1).With(1, 20*time.Millisecond, patient),
	}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Distances) != 2 || report.Distances[0].Masters != 3 || report.Distances[1].Group != "far" || report.Distances[1].Asked <= report.Distances[0].Asked {
		t.Errorf("distances %+v, want three near ones and two far ones", report.Distances)
	}
	for _, r := range report.Results[:4] {
		must(t, r, P50, 1, anything)
		must(t, r, P50R, 0.1, anything)
		must(t, r, P99R, r.Values[P50R], anything)
		must(t, r, LineCPU, 0.1, anything)
		if r.Subject != "redsync tuned" { // gives up after 50 ms, which a busy machine may take
			must(t, r, Failures, 0, 0)
			must(t, r, Leftover, 0, 0)
			must(t, r, Leaked, 0, 0)
		}
		if r.Distance != "near+far" {
			t.Errorf("%s: distance %q", r.Workload, r.Distance)
		}
	}
	must(t, report.Results[2], Violations, 0, 0)
	must(t, report.Results[2], PingP50, 1, anything)
	if near := report.Results[4]; near.Workload != PairsOf(1) || near.Values[P50R] != 0 || near.Distance != "" {
		t.Errorf("a workload without a distance: %+v", near)
	}
	var text, html bytes.Buffer
	report.WriteText(&text)
	if err := report.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"near+far: far", "lock and unlock, one caller, masters near+far", "lock and unlock, one caller\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text: no %q:\n%s", want, text.String())
		}
	}
	for _, want := range []string{" R</text>", "Throughput, masters near", "<h2>Distances</h2>"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("html: no %q", want)
		}
	}
}

func TestExtend_refuses_masters_that_a_line_cannot_reach(t *testing.T) {
	err := Given([]string{"rediss://user:secret@host:1"}).Extend("serve-lines")
	if err == nil || !strings.Contains(err.Error(), "rediss://host:1: a distance can be measured only with plain TCP addresses") {
		t.Errorf("error %v", err)
	}
}

func TestReport_is_80_columns_wide(t *testing.T) {
	m, d := Given(make([]string, 7)), distance(t, "near=0.5ms*3,far=20ms*2")
	r := &Report{Machine: Machine{CPU: "Some(R) Processor With a Name", OS: "linux/amd64", Go: "go1.26.8", Load: "10.00"}, Masters: "7, redis-server 7.0.15"}
	for _, w := range append(Workloads(Full, m), Remote(Full, m, d)...) {
		for _, s := range w.Subjects {
			result := newResult(w, s)
			for _, of := range append([]Metric{PerSecond, P50, P99, P50R, P99R, ClientCPU, ServerCPU, LineCPU, Allocations, Fairness, Switches, Commands, WaitP99, "pairs"},
				named(TwoHung, PerSecond), named(OneKilled, PerSecond), named(OneKilled, P50), named(OneKilled, P99), named(OneKilled, P50Ratio), named(OneKilled, P99Ratio), named(OneKilled, P50R)) {
				result.Values[of] = map[Metric]float64{PerSecond: 123456, P50: 12345, P99: 98765, WaitP99: 987654, P50R: 12.34, P99R: 98.76, Switches: 1, Fairness: 1, "pairs": 100000}[of]
				if result.Values[of] == 0 {
					result.Values[of] = 123.4
				}
			}
			r.Results = append(r.Results, result)
		}
	}
	r.Distances = []Reach{{"near+far", "near", 3, 500, 501, 512}}
	var out bytes.Buffer
	r.WriteText(&out)
	WriteGoals(&out, r.Judge())
	WriteGoals(&out, r.JudgeRemote())
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
