package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/monitor"
	lock "github.com/quorumlock/quorumlock/redlock"
)

// TestMain is also the program of the embedded masters, and of the delay lines.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve-master":
		err = ServeEmbedded(os.Args[2], os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == "serve-lines":
		err = ServeLines(os.Args[2:], os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		os.Exit(1)
	}
}

func realMasters(t *testing.T, n int) *Masters {
	t.Helper()
	m, err := Real(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// patient is the library with a node timeout that does not end on a busy machine.
func patient(nodes int) Subject { return Redlock(nodes, lock.WithNodeTimeout(TTL/2)) }

// runs carries out one round of a workload on five real masters.
func runs(t *testing.T, w Workload, length time.Duration, subjects ...Subject) *Report {
	t.Helper()
	report, err := Plan{Masters: realMasters(t, 5), Workloads: []Workload{w.With(1, length, subjects...)}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// must fails the test unless a value was measured and is in range.
func must(t *testing.T, r *Result, m Metric, lo, hi float64) {
	t.Helper()
	if v, ok := r.Values[m]; !ok || v < lo || v > hi {
		t.Errorf("%s with %s: %s = %v (measured: %v), want %v to %v; notes %q", r.Workload, r.Subject, m, v, ok, lo, hi, r.Notes)
	}
}

const anything = 1e12

func TestPairs_measures_every_subject_in_turns(t *testing.T) {
	report := runs(t, Pairs(4), 30*time.Millisecond, Redigo(), RedigoPool(4), patient(1), patient(5), Redsync(5, 4))
	if len(report.Results) != 5 {
		t.Fatalf("%d results", len(report.Results))
	}
	for _, r := range report.Results {
		must(t, r, PerSecond, 1, anything)
		must(t, r, P50, 1, anything)
		must(t, r, P99, r.Values[P50], anything)
		must(t, r, ClientCPU, 0.1, anything)
		must(t, r, ServerCPU, 0.1, anything)
		must(t, r, Allocations, 1, anything)
		must(t, r, Failures, 0, 0)
		must(t, r, Leftover, 0, 0)
		must(t, r, Leaked, 0, 0)
	}
}

func TestHandoff_sees_one_holder_at_a_time_and_counts_commands(t *testing.T) {
	report := runs(t, Handoff("handoff/test", "test", Contention{Clients: 3, Section: time.Millisecond}), 150*time.Millisecond, patient(5))
	r := report.Results[0]
	must(t, r, Violations, 0, 0)
	must(t, r, Failures, 0, 0)
	must(t, r, PerSecond, 1, anything)
	must(t, r, P50, 1, anything)
	must(t, r, Commands, 5, anything) // a release at least, everywhere
	must(t, r, Fairness, 1.0/3, 1)
	must(t, r, Leftover, 0, 0)
	must(t, r, Leaked, 0, 0)
}

func TestHandoff_reports_a_lock_that_excludes_nobody(t *testing.T) {
	report := runs(t, Handoff("handoff/test", "test", Contention{Clients: 3, Section: time.Millisecond}), 50*time.Millisecond, noLock())
	must(t, report.Results[0], Violations, 1, anything)
}

func TestDegraded_compares_hung_and_killed_masters_with_healthy_ones(t *testing.T) {
	report := runs(t, Degraded(1), 200*time.Millisecond, patient(5))
	r := report.Results[0]
	for _, state := range States {
		must(t, r, named(state, PerSecond), 1, anything)
		must(t, r, named(state, Failures), 0, 0)
	}
	for _, state := range States[1:] {
		must(t, r, named(state, P50Ratio), 0.01, anything)
	}
	must(t, r, Leaked, 0, 0)
	must(t, r, Leftover, 0, 0)
}

func TestDegraded_reports_a_library_that_waits_for_a_hung_master(t *testing.T) {
	report := runs(t, Degraded(1), 100*time.Millisecond, Redsync(5, 4))
	r := report.Results[0]
	must(t, r, named(OneHung, Stuck), 1, 1)
	if len(r.Notes) == 0 {
		t.Error("no note")
	}
}

func TestHeld_finds_the_leases_alive(t *testing.T) {
	report := runs(t, Held(5000), 50*time.Millisecond, patient(5))
	r := report.Results[0]
	must(t, r, BytesHeld, 1, anything)
	must(t, r, GoroutinesHeld, 1, anything)
	must(t, r, Lost, 0, 0)
	must(t, r, Leaked, 0, 0)
}

func TestOrphans_counts_keys_that_nobody_holds(t *testing.T) {
	report := runs(t, Orphans(2000), 0, patient(5), leaky())
	must(t, report.Results[0], "pairs", 2000, anything)
	must(t, report.Results[0], Leftover, 0, 0)
	must(t, report.Results[1], Leftover, 64, 64)
	if failed := report.Failed(); len(failed) != 1 || !strings.Contains(failed[0], "keys left at the masters after every release: 64") {
		t.Errorf("what went wrong: %q, want the keys of the second alone", failed)
	}
}

func TestMonitor_tells_what_clients_send_from_what_scripts_call(t *testing.T) {
	m := realMasters(t, 1)
	trial := &Trial{Masters: m.all}
	watch, err := monitor.Watch("", trial.URLs()...)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	conn, err := monitor.Dial(m.all[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// SET, EVALSHA that fails, EVAL with two commands inside.
	if _, err := conn.Do("SET", "key", redigoValue); err != nil {
		t.Fatal(err)
	}
	if _, err := releaseScript.Do(conn, "key", redigoValue); err != nil {
		t.Fatal(err)
	}
	within(5*time.Second, func() bool { return watch.Count() >= 3 })
	if set, sha, eval, all := watch.Named("SET"), watch.Named("EVALSHA"), watch.Named("EVAL"), watch.Count(); set != 1 || sha != 1 || eval != 1 || all != 3 {
		t.Errorf("SET %d, EVALSHA %d, EVAL %d, all %d; want 1, 1, 1, 3", set, sha, eval, all)
	}
}

// within waits until ok, or no longer: the test looks at what there is by then.
func within(patience time.Duration, ok func() bool) {
	for deadline := time.Now().Add(patience); !ok() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func TestEmbedded_masters_can_be_broken_and_end_with_Close(t *testing.T) {
	m, err := Embedded(3, "serve-master")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	m.all[1].(Breakable).Restart()
	report, err := Plan{Masters: m, Workloads: []Workload{Pairs(1).With(1, 20*time.Millisecond, patient(3))}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	must(t, report.Results[0], PerSecond, 1, anything)
	must(t, report.Results[0], ServerCPU, 1, anything)
	m.Close()
	if m.Check() == nil {
		t.Error("they answer after Close")
	}
}

func TestGiven_masters_are_not_broken(t *testing.T) {
	servers := realMasters(t, 3)
	var urls []string
	for _, s := range servers.all {
		urls = append(urls, s.URL())
	}
	report, err := Plan{Masters: Given(urls), Workloads: []Workload{Degraded(1).With(1, time.Second, patient(3))}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Results[0]; len(r.Values) != 0 || len(r.Notes) != 1 {
		t.Errorf("values %v, notes %q", r.Values, r.Notes)
	}
}

func TestPlan_refuses_subjects_that_want_more_masters(t *testing.T) {
	m := Given([]string{"127.0.0.1:1"})
	_, err := Plan{Masters: m, Workloads: []Workload{Pairs(1).With(1, time.Second, patient(5))}}.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "wants 5 masters, there are 1") {
		t.Errorf("error %v", err)
	}
}

func TestReport_ratio_is_the_median_of_the_ratios_within_rounds(t *testing.T) {
	// Given a machine that is ten times slower in the second round.
	a := &Result{Workload: "w", Subject: "a", Rounds: []map[Metric]float64{{P50: 2}, {P50: 20}, {P50: 3}}}
	b := &Result{Workload: "w", Subject: "b", Rounds: []map[Metric]float64{{P50: 1}, {P50: 10}, {P50: 1}}}
	r := &Report{Results: []*Result{a, b}}
	if got := r.Ratio("w", "a", "b", P50); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
}

func TestJudge_does_not_accept_what_was_not_measured(t *testing.T) {
	for _, v := range (&Report{}).Judge() {
		if v.Met || v.Shown != "not measured" {
			t.Errorf("%s: met %v, shown %q", v.Row, v.Met, v.Shown)
		}
	}
}

func TestOnly_picks_by_name_and_by_kind(t *testing.T) {
	all := Workloads(Normal, Given(make([]string, 5)))
	for _, c := range []struct {
		names []string
		want  int
	}{{nil, len(all)}, {[]string{"pair"}, 3}, {[]string{"pair/1", "held"}, 2}} {
		if some, err := Only(c.names, all); err != nil || len(some) != c.want {
			t.Errorf("%q: %d workloads, %v; want %d", c.names, len(some), err, c.want)
		}
	}
	if _, err := Only([]string{"pears"}, all); err == nil || !strings.Contains(err.Error(), "pair/64") {
		t.Errorf("error %v does not say what there is", err)
	}
}

func TestReport_can_be_read_by_people_and_programs(t *testing.T) {
	report := runs(t, Pairs(1), 20*time.Millisecond, Redigo(), patient(5))
	report.Goals = report.Judge()
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error { report.WriteText(w); WriteGoals(w, report.Goals); return nil },
		"html": report.WriteHTML,
		"json": report.WriteJSON,
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := out.String(); !strings.Contains(text, "redlock on 5") || strings.Contains(text, "NaN") {
			t.Errorf("%s: without the subject, or with a NaN:\n%s", name, text)
		}
		if text := out.String(); name == "html" && (strings.Contains(text, "http://") || strings.Contains(text, "https://") || !strings.Contains(text, "<svg")) {
			t.Error("html: wants the network, or has no picture")
		}
		if name == "json" {
			var again Report
			if err := json.Unmarshal(out.Bytes(), &again); err != nil || len(again.Results) != 2 {
				t.Errorf("json: %d results, %v", len(again.Results), err)
			}
		}
	}
}

// noLock is a subject whose locks everybody gets.
func noLock() Subject { return fake(func(string) error { return nil }) }

// leaky is a subject that does not release.
func leaky() Subject {
	return Subject{Name: "leaky", Nodes: 1, Open: func(_ context.Context, urls []string) (Client, error) {
		pool := NewPool(urls[0], 64)
		return fakeClient(func(name string) error {
			conn := pool.Get()
			defer conn.Close()
			_, err := conn.Do("SET", name, "for ever")
			return err
		}), nil
	}}
}

func fake(lock func(name string) error) Subject {
	return Subject{Name: "fake", Nodes: 1, Open: func(context.Context, []string) (Client, error) { return fakeClient(lock), nil }}
}

type fakeClient func(name string) error

func (c fakeClient) Mutex(name string) Mutex { return fakeMutex{c, name} }
func (c fakeClient) Close() error            { return nil }

type fakeMutex struct {
	lock fakeClient
	name string
}

func (m fakeMutex) Lock(context.Context) (Lease, error) { return m, m.lock(m.name) }
func (m fakeMutex) Unlock(context.Context) error        { return nil }

func TestResult_does_not_hide_what_went_wrong_once(t *testing.T) {
	r := newResult(Pairs(1), patient(5))
	for _, failed := range []float64{0, 7, 0} {
		r.add(&Trial{values: map[Metric]float64{Failures: failed, named(OneHung, Failures): failed, P50: failed}}, nil)
	}
	if r.Values[Failures] != 7 || r.Values[named(OneHung, Failures)] != 7 || r.Values[P50] != 0 {
		t.Errorf("values %v, want 7 failures and a median of 0", r.Values)
	}
}

// A number is worth nothing if the operations failed that it is about. While masters
// hang, it is what was to be found out.
func TestReport_names_the_cases_in_which_operations_failed(t *testing.T) {
	result := func(w Workload, m Metric, n float64, err error) *Result {
		r := newResult(w, patient(5))
		r.add(&Trial{values: map[Metric]float64{m: n}}, err)
		return r
	}
	us := patient(5).Name
	for want, r := range map[string]*Result{
		"": result(Pairs(1), Failures, 0, nil),
		"pair/64 with " + us + ": 1 operation failed":                                result(Pairs(64), Failures, 1, nil),
		"pair/1 with " + us + ": not finished":                                       result(Pairs(1), P50, 1, errStuck),
		"held with " + us + ": leases lost: 3":                                       result(Held(10), Lost, 3, nil),
		"degraded/1 with " + us + ": 2 operations failed":                            result(Degraded(1), named(Healthy, Failures), 2, nil),
		"handoff/relaxed with " + us + ": times two clients had the lock at once: 1": result(Handoff(RelaxedHandoff, "", Relaxed), Violations, 1, nil),
	} {
		if got := strings.Join((&Report{Results: []*Result{r}}).Failed(), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, expected := range []*Result{
		result(Degraded(64), named(TwoHung, Failures), 5, nil), result(Degraded(64), Failures, 5, nil), result(Degraded(64), P50, 1, errGivenUp),
	} {
		if got := (&Report{Results: []*Result{expected}}).Failed(); got != nil {
			t.Errorf("%q, which was to be measured", got)
		}
	}
}
