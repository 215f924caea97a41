package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// simulated runs the command and returns its output and exit code.
func simulated(args ...string) (out string, code int) {
	var b strings.Builder
	cmd := newSimulateCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return b.String() + err.Error(), codeOf(err)
	}
	return b.String(), 0
}

func TestSimulateIsSafeWithinTheAssumptions(t *testing.T) {
	out, code := simulated("--seeds", "20", "--duration", "10s")
	if code != 0 || !strings.Contains(out, "SAFE: no promise was broken") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestSimulateSaysTheSameEveryTime(t *testing.T) {
	verdict := func() string {
		out, _ := simulated("--seeds", "20", "--duration", "10s", "--seed", "7")
		table, _, _ := strings.Cut(out, "SAFE")
		return table
	}
	if a, b := verdict(), verdict(); a != b {
		t.Errorf("first\n%s\nthen\n%s", a, b)
	}
}

func TestSimulateShowsAKnownFailureAndWhatStopsIt(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, code := simulated("restart-amnesia", "--seeds", "5", "--html", page)
	if code != 0 {
		t.Errorf("exit code %d, want 0: it is safe with its protection", code)
	}
	for _, want := range []string{"without restart guard", "unsafe: overlap", "with restart guard", "restart-empty C", "both hold"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "client 1", "both hold the lock from"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if strings.Contains(string(html), "http://") || strings.Contains(string(html), "https://") {
		t.Error("the page needs the network")
	}
}

func TestSimulateWritesTheVerdictAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "verdict.json")
	if out, code := simulated("--faults", "flush", "--seeds", "40", "--duration", "20s", "--json", file); code != 0 {
		t.Fatalf("exit code %d, want 0: FLUSHALL is outside of the assumptions\n%s", code, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schedules": 40`, `"flush":`, `"failing_schedule"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%.2000s", want, b)
		}
	}
}

func TestSimulateListsEveryScenario(t *testing.T) {
	out, code := simulated("--list")
	for _, want := range []string{"S3 ", "restart-amnesia", "V6 ", "R0 "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
}

func TestSimulateRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"no-such-scenario", `scenario "no-such-scenario"`},
		{"--faults no-such-fault", `faults "no-such-fault"`},
		{"--seeds 0", "--seeds 0"},
		{"--nodes 99", "Nodes(99)"},
		{"--ttl 1ms", "TTL(1ms)"},
		{"failover --nodes 3", "--nodes"},
	} {
		out, code := simulated(strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit code %d, want %d, and %q in: %s", c.args, code, exitUsage, c.says, out)
		}
	}
}
