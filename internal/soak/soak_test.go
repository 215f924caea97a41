package soak

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every load runs, in the smallest size, and finds nothing.
func TestEvery_load_runs(t *testing.T) {
	size := Size{Duration: 100 * time.Millisecond, Leases: 10, Many: 20, Clients: 2, Callers: 3, Idle: 100 * time.Millisecond, Dials: 2}
	loads, err := Only([]string{"waiters", "crowd", "dials"}, Loads(size))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loads {
		report, err := Run(t.Context(), l, func(float64, string) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			t.Errorf("%s: %s", l.Name, f)
		}
		var text strings.Builder
		report.WriteText(&text)
		for _, line := range strings.Split(text.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("wider than a terminal: %q", line)
			}
		}
	}
}

func TestWhat_grows_is_found(t *testing.T) {
	before := Sample{When: "before", Heap: 100 << 20, Resident: 200 << 20, Goroutines: 20, Descriptors: 20, Connections: 10}
	for what, grow := range map[string]func(*Sample){
		"heap":            func(s *Sample) { s.Heap *= 2 },
		"resident memory": func(s *Sample) { s.Resident *= 2 },
		"goroutines":      func(s *Sample) { s.Goroutines *= 2 },
		"open files":      func(s *Sample) { s.Descriptors *= 2 },
		"connections":     func(s *Sample) { s.Connections *= 3 },
	} {
		tr := &trial{report: &Report{}}
		after := before
		tr.flat(before, after)
		if !tr.report.OK() {
			t.Fatalf("nothing grew, and %v was found", tr.report.Findings)
		}
		grow(&after)
		tr.flat(before, after)
		if len(tr.report.Findings) != 1 || !strings.HasPrefix(tr.report.Findings[0], what+" grew") {
			t.Errorf("%s: found %v", what, tr.report.Findings)
		}
	}
}

func TestA_load_that_does_not_exist_is_refused(t *testing.T) {
	if _, err := Only([]string{"earthquake"}, Loads(Short)); err == nil {
		t.Error("an earthquake was accepted")
	}
}
