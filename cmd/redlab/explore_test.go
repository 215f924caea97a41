package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/simulate/explore"
)

// What was explored until ^C is shown.
func TestExplore_shows_what_it_has_when_it_is_interrupted(t *testing.T) {
	c := clitest.New(t, "simulate", "--explore", "fair-wait")
	table, err := os.Create(c.File("table"))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	c.Stdout = table
	c.Begin()
	c.Until("the heading is written", func() bool { return strings.Contains(c.Content("table"), "seconds") })

	c.Signal(syscall.SIGINT)

	c.WantExit(cli.ExitSignal + int(syscall.SIGINT))
	if shown := c.Content("table"); !strings.Contains(shown, "safe as far as tried") {
		t.Errorf("it does not show what it has:\n%s", shown)
	}
	c.WantStderr("interrupted: 1 of 1 small worlds")
}

func TestSimulate_refuses_flags_that_would_have_no_effect(t *testing.T) {
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
		"--ttl 2h":                   "from 25ms to 1h, or 0 (drawn)",
		"--explore try --schedule f": "--schedule: has no effect with --explore",
	} {
		if out, code := simulated(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, and no %q in: %s", args, code, says, out)
		}
	}
}

func TestExplore_fits_eighty_columns(t *testing.T) {
	out, code := simulated("--explore", "--runs", "1")
	if code != cli.ExitFailure { // no break is found in a single order
		t.Errorf("exit code %d", code)
	}
	clitest.WantColumns(t, out, 80)
	words := strings.Join(strings.Fields(out), " ")
	if !strings.Contains(words, "a writer locks and unlocks while a reader waits") || !strings.Contains(words, "without its protection") {
		t.Errorf("something is missing:\n%s", out)
	}
}

// The exploration says how many worlds there are, and how far it goes in each; without
// --bound it ends.
func TestExplore_says_how_far_it_goes(t *testing.T) {
	for args, says := range map[string]string{
		"--explore --runs 1":         fmt.Sprintf("%d small worlds, every order that leaves the usual course at most 3 times (--bound), then %d without one of their protections.", len(explore.Worlds), len(explore.KnownBads)),
		"--explore try --bound 1":    "1 small world, every order that leaves the usual course at most once (--bound).",
		"--explore hold --bound 0":   "1 small world, every order.",
		"--explore forget --bound 2": "1 small world, every order that leaves the usual course at most 2 times (--bound).",
	} {
		out, _ := simulated(strings.Fields(args)...)
		if head, _, _ := strings.Cut(out, "\n\n"); strings.Join(strings.Fields(head), " ") != says {
			t.Errorf("%s: it begins with %q, want %q", args, head, says)
		}
	}
}
