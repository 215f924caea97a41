package chaos

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate"
)

// amnesia is a run in which three of five masters forgot a lock, and somebody else
// got it.
func amnesia(unguarded bool) *Report {
	r := &Report{Config: Config{Masters: 5, Clients: 2, Workloads: Workloads, Unguarded: unguarded}, Start: time.Hour}
	for master := range 3 {
		r.Faults = append(r.Faults, Done{Kind: kindNamed("kill"), Target: master, From: 2 * time.Second, Until: 2050 * time.Millisecond})
	}
	span := func(client int, lease string, since, from, to time.Duration) *Span {
		return &Span{
			Client: client, Workload: "register", Lock: "register-1", Lease: lease, Weight: 1,
			Since: r.Start + since, From: r.Start + from, To: r.Start + to,
		}
	}
	r.History = &History{start: r.Start, Spans: []*Span{
		span(0, "a", time.Second, 1010*time.Millisecond, 4*time.Second),
		span(1, "b", 2060*time.Millisecond, 2070*time.Millisecond, 3*time.Second),
	}}
	r.Findings = r.History.overlaps("register-1", 1)
	return r
}

func kindNamed(name string) *Kind {
	kinds, err := KindsOf(name)
	if err != nil {
		panic(err)
	}
	return kinds[0]
}

func TestTwo_holders_are_found_in_the_simulator_too(t *testing.T) {
	for name, test := range map[string]struct {
		unguarded bool
		want      string
	}{
		"without the guard": {true, "has two holders, too"},
		"with the guard":    {false, "has no two holders"},
	} {
		r := amnesia(test.unguarded)
		if len(r.Findings) != 1 {
			t.Fatalf("%d findings, want one", len(r.Findings))
		}
		said, err := r.Replay(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, test.want) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
		// What it names runs as the command runs it.
		_, file, _ := strings.Cut(said, "--schedule ")
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := simulate.ReadSchedule(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		run, err := simulate.RunSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		if run.Safe() == test.unguarded {
			t.Errorf("%s: it ran, and broken promises: %v", name, run.Failures)
		}
	}
}

// Every kind of lock can be run, and every fault but that of a client which leaves.
func TestThe_simulator_knows_what_chaos_does(t *testing.T) {
	for _, k := range Kinds {
		for target := range 5 {
			r := &Report{Config: Config{Masters: 5, Clients: 5, Workloads: Workloads}}
			r.Faults = []Done{{Kind: k, Target: target, From: 3 * time.Second, Until: 4 * time.Second}}
			var spans []*Span
			for _, w := range Workloads {
				for _, lock := range w.Locks {
					spans = append(spans, &Span{
						Client: target, Workload: w.Name, Lock: lock, Lease: w.Name + " " + lock, Weight: w.Capacity,
						Since: 2 * time.Second, From: 2 * time.Second, To: 5 * time.Second,
					})
				}
			}
			r.History = &History{Spans: spans}
			for _, w := range Workloads {
				if len(w.Locks) == 0 {
					continue // a latch, which nobody holds
				}
				s, err := r.schedule(Finding{Check: Overlap, At: 4 * time.Second, Lock: w.Locks[0]})
				if err != nil {
					t.Fatalf("%s, %s: %v", w.Name, k.Name, err)
				}
				if len(s.Faults) == 0 && k.Name != "leave" {
					t.Errorf("%s is no fault of the simulator", k.Name)
				}
				run, err := simulate.RunSchedule(s)
				if err != nil {
					t.Fatal(err)
				}
				if !run.Safe() || run.Stats.Acquisitions == 0 {
					t.Errorf("%s, %s: %d acquisitions, broken promises: %v", w.Name, k.Name, run.Stats.Acquisitions, run.Failures)
				}
			}
		}
	}
}
