package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/simulate"
)

// Whoever has told the shell where the masters are can simulate all the same.
func TestThe_simulator_ignores_real_masters(t *testing.T) {
	c := clitest.New(t, "simulate", "--list")
	c.Env = append(c.Env, "REDLOCK_NODES=a:6379,b:6379,c:6379", "REDLOCK_TTL=90s")
	c.Write("redlock/config.yaml", "nodes: [a:6379, b:6379, c:6379]\nttl: 1m")
	c.Begin().WantExit(0)
	c.WantStdout("restart-amnesia")
}

// simulated runs the command and returns its output and exit code.
func simulated(args ...string) (out string, code int) {
	var b strings.Builder
	cmd := newSimulateCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return b.String() + err.Error(), cli.CodeOf(err)
	}
	return b.String(), 0
}

func TestSimulate_is_safe_within_the_assumptions_every_time(t *testing.T) {
	verdict := func() string {
		out, code := simulated("--seeds", "8", "--duration", "10s", "--seed", "7")
		if code != 0 || !strings.Contains(out, "SAFE: no promise was broken") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		clitest.WantColumns(t, out, 80)
		table, _, _ := strings.Cut(out, "SAFE") // then comes how long it took
		return table
	}
	if a, b := verdict(), verdict(); a != b {
		t.Errorf("first\n%s\nthen\n%s", a, b)
	}
}

func TestSimulate_shows_a_known_failure_and_what_stops_it(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, code := simulated("restart-amnesia", "--seeds", "5", "--html", page)
	if code != 0 {
		t.Errorf("exit code %d, want 0: it is safe with its protection", code)
	}
	clitest.WantColumns(t, out, 80)
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

func TestSimulate_prints_the_verdict_as_JSON(t *testing.T) {
	out, code := simulated("--faults", "evict", "--nodes", "3", "--seeds", "100", "--duration", "5s", "--json")
	if code != 0 {
		t.Fatalf("exit code %d, want 0: eviction is outside of the assumptions\n%s", code, out)
	}
	if !json.Valid([]byte(out)) {
		t.Errorf("something beside the JSON is printed:\n%.2000s", out)
	}
	for _, want := range []string{`"schedules": 100`, `"evict":`, `"failing_schedule"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%.2000s", want, out)
		}
	}

	// When the schedule that it holds is run again, the same is printed of that.
	file := filepath.Join(t.TempDir(), "run.json")
	clitest.Must(t, os.WriteFile(file, []byte(out), 0o600))
	again, code := simulated("--schedule", file, "--json")
	if code != cli.ExitFailure {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailure)
	}
	for _, want := range []string{`"schedules": 1,`, `"failing_schedule"`} {
		if !json.Valid([]byte(again)) || !strings.Contains(again, want) {
			t.Errorf("no %s, or no JSON, in\n%.2000s", want, again)
		}
	}
}

func TestSimulate_names_the_seeds_that_broke_a_promise(t *testing.T) {
	out, _ := simulated("--faults", "evict", "--nodes", "3", "--seeds", "100", "--duration", "5s")
	_, list, found := strings.Cut(out, "\nseed  broke first")
	if !found {
		t.Fatalf("no list of seeds in\n%.3000s", out)
	}
	clitest.WantColumns(t, list, 80)
	seed, _, _ := strings.Cut(strings.Split(list, "\n")[1], " ")

	again, _ := simulated("--faults", "evict", "--nodes", "3", "--seed", seed, "--seeds", "1", "--duration", "5s")

	if !strings.Contains(again, "UNSAFE") {
		t.Errorf("seed %s alone breaks nothing:\n%.3000s", seed, again)
	}
}

func TestSimulate_all_prints_every_outcome_as_JSON(t *testing.T) {
	out, code := simulated("all", "--seeds", "1", "--json")
	var got []outcome
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got) != len(simulate.Catalogue) {
		t.Errorf("exit code %d, %d outcomes, error %v", code, len(got), err)
	}
}

// What was simulated until ^C is shown.
func TestSimulate_shows_what_it_has_when_it_is_interrupted(t *testing.T) {
	c := clitest.New(t, "simulate", "--seeds", "1000000", "--html", "page.html")
	c.Begin()
	c.Until("it has begun", func() bool { _, err := os.Stat(c.File("page.html")); return err == nil })
	c.Signal(syscall.SIGINT)
	c.WantExit(cli.ExitSignal + int(syscall.SIGINT))
	c.WantStdout("schedules")
	c.WantStderr("interrupted", "of 1000000 schedules")
}

// What only one of the two has run is no comparison.
func TestCompare_shows_no_table_of_what_only_one_has_run(t *testing.T) {
	for _, more := range []string{"--html=page.html", "--json"} {
		c := clitest.New(t, "simulate", "compare", "--seeds", "1000000", "--html", "begun.html", more)
		c.Begin()
		c.Until("it has begun", func() bool {
			some, err := filepath.Glob(c.File("*.html"))
			return err == nil && len(some) > 0
		})
		c.Signal(syscall.SIGINT)
		c.WantExit(cli.ExitSignal + int(syscall.SIGINT))
		c.WantStderr("interrupted: R0 ran ", " and quorumlock 0 of 1000000 schedules")
		if pages, _ := filepath.Glob(c.File("*.html")); c.Out.Len() > 0 || len(pages) > 0 {
			t.Errorf("%s: it prints\n%s\nand leaves %q", more, &c.Out, pages)
		}
	}
}

func TestSimulate_checks_the_page_before_the_run(t *testing.T) {
	for _, args := range [][]string{{"--html", "/none/page.html"}, {"all", "--html", "page.html"}} {
		if out, code := simulated(args...); code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, want %d: %s", args, code, cli.ExitUsage, out)
		}
	}
}

func TestSimulate_lists_every_scenario(t *testing.T) {
	out, code := simulated("--list")
	for _, want := range []string{"S3 ", "restart-amnesia", "V6 ", "R0 "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	clitest.WantColumns(t, out, 80)
}

func TestA_scenario_with_a_long_name_fits_the_terminal(t *testing.T) {
	for _, name := range []string{"newcomer-after-flush", "restart-plus-step", "eviction"} {
		out, code := simulated(name, "--seeds", "1")
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		clitest.WantColumns(t, out, 80)
	}
}

func TestSimulate_refuses_what_it_does_not_know(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"no-such-scenario", `scenario "no-such-scenario"`},
		{"--faults no-such-fault", `faults "no-such-fault"`},
		{"--seeds 0", "--seeds 0"},
		{"--nodes 99", "--nodes 99: must be from 1 to 26"},
		{"--ttl 1ms", "--ttl 1ms: must be from 25ms"},
		{"failover --nodes 3", "--nodes"},
	} {
		out, code := simulated(strings.Fields(c.args)...)
		if code != cli.ExitUsage || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit code %d, want %d, and %q in: %s", c.args, code, cli.ExitUsage, c.says, out)
		}
	}
}

func TestSimulate_compares_with_a_naive_lock(t *testing.T) {
	page := filepath.Join(t.TempDir(), "compare.html")

	out, code := simulated("compare", "--seeds", "60", "--html", page)

	if code != 0 || !strings.Contains(out, "quorumlock") || !strings.Contains(out, "at most one client holds the lock") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<h2>R0</h2>") {
		t.Errorf("the page: %v", err)
	}
	if out, code := simulated("compare", "V9"); code != 64 || !strings.Contains(out, `"V9"`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
