package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// What was explored until ^C is shown.
func TestExploreShowsWhatItHasWhenItIsInterrupted(t *testing.T) {
	c := redlockCommand(t, "simulate", "--explore", "fair-wait")
	table, err := os.Create(c.file("table"))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	c.Stdout = table
	c.start()
	if heading := c.content("table"); !strings.Contains(heading, "seconds") {
		t.Fatalf("it begins with %q", heading)
	}

	c.signal(syscall.SIGINT)

	c.wantExit(exitSignal + int(syscall.SIGINT))
	if shown := c.content("table"); !strings.Contains(shown, "safe as far as tried") {
		t.Errorf("it does not show what it has:\n%s", shown)
	}
	c.wantStderr("interrupted: 1 of 1 small worlds")
}

func TestSimulateRefusesFlagsThatWouldHaveNoEffect(t *testing.T) {
	for args, says := range map[string]string{
		"--bound 3":                  "--bound: needs --explore",
		"--runs 3":                   "--runs: needs --explore",
		"--explore --bound -1":       "--bound -1: must not be negative",
		"--explore --runs -1":        "--runs -1: must not be negative",
		"--explore try --seeds 3":    "--seeds: has no effect with --explore",
		"--explore try --html f":     "--html: has no effect with --explore",
		"--explore try --json":       "--json: has no effect with --explore",
		"--list --kind x":            "--kind: has no effect with --list",
		"--nodes -1":                 "from 1 to 26, or 0 (drawn)",
		"--clients 101":              "from 1 to 100, or 0 (drawn)",
		"--ttl 2h":                   "from 10ms to 1h, or 0 (drawn)",
		"--explore try --schedule f": "--schedule: has no effect with --explore",
	} {
		if out, code := simulated(strings.Fields(args)...); code != exitUsage || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, and no %q in: %s", args, code, says, out)
		}
	}
}

// What a file says for all simulations is no mistake of the one that does not heed it.
func TestSimulateDoesNotRefuseWhatTheEnvironmentSaysForOthers(t *testing.T) {
	c := redlockCommand(t, "simulate", "--explore", "try", "--runs", "10")
	c.Env = append(c.Env, "REDLOCK_SEEDS=3")
	c.start().wantExit(0)
}

func TestExploreFitsEightyColumns(t *testing.T) {
	out, code := simulated("--explore", "--runs", "1")
	if code != exitFailure { // no break is found in a single order
		t.Errorf("exit code %d", code)
	}
	wantColumns(t, out, 80)
	words := strings.Join(strings.Fields(out), " ")
	if !strings.Contains(words, "a writer locks and unlocks while a reader waits") || !strings.Contains(words, "without its protection") {
		t.Errorf("something is missing:\n%s", out)
	}
}
