package chaos

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Given clients and masters that nothing happens to, when they have run, then
// every workload was used, nothing is found and nothing is left.
func TestA_run_without_faults_finds_nothing(t *testing.T) {
	t.Setenv(beAClient, "yes")
	report, err := Run(t.Context(), Config{
		Seed: 1, Duration: 5 * time.Second, Masters: 3, Clients: 2,
		Workloads: Workloads, Dir: t.TempDir(), ClientCommand: []string{os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("%s: %s: %s", f.Check, f.Lock, f.Text)
	}
	for _, s := range report.Summaries() {
		if s.Holds == 0 || s.Updates == 0 && s.Workload != permits.Name {
			t.Errorf("workload %s: %d holds, %d updates: it did nothing", s.Workload, s.Holds, s.Updates)
		}
	}
	if said := report.latches(latch); strings.HasPrefix(said, "0 arrivals") || strings.Contains(said, " 0 of them judged") {
		t.Errorf("latch: %s", said)
	}
	var text, page strings.Builder
	report.WriteText(&text)
	if err := report.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if len(line) > 80 {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
	if !strings.Contains(page.String(), "No promise was broken.") {
		t.Error("the page does not say how it ended")
	}
}

func TestA_config_that_cannot_work_is_refused(t *testing.T) {
	good := Config{Duration: time.Minute, Masters: 5, Clients: 5, Workloads: Workloads}
	for want, spoil := range map[string]func(*Config){
		"duration 1s":  func(c *Config) { c.Duration = time.Second },
		"2 masters":    func(c *Config) { c.Masters = 2 },
		"1 clients":    func(c *Config) { c.Clients = 1 },
		"no workloads": func(c *Config) { c.Workloads = nil },
	} {
		c := good
		spoil(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}
