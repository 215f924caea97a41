package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

// Every command that the pages show is one that exists, with flags and
// arguments that it takes.
func TestEvery_command_in_the_pages_is_accepted(t *testing.T) {
	clitest.WantAccepted(t, newRootCommand, 12)
}

// What docs/simulation.md shows works: with few schedules, or with -all as it stands
// there.
func TestThe_commands_of_simulation_work(t *testing.T) {
	ran, failing := 0, schedule(t)
	for _, line := range clitest.CommandLines(clitest.Read(t, clitest.Tree+"/docs/simulation.md"), "redlab") {
		words := strings.Fields(line)[1:]
		switch explores := slices.Contains(words, "--explore"); {
		case explores && !*clitest.Everything:
			continue // takes minutes
		case words[0] == "simulate" && !explores && !slices.Contains(words, "--schedule") && !slices.Contains(words, "--list") && !*clitest.Everything:
			words = append(words, "--seeds", "1")
		}
		c := clitest.New(t, words...)
		c.Write("run.json", failing)
		broke := slices.Contains(words, "--schedule") // as it did before
		if code := c.Begin().End(); code != 0 && !(broke && code == cli.ExitFailure) {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &c.Out, &c.Errors)
		}
		ran++
	}
	if ran < 9 {
		t.Errorf("only %d commands found", ran)
	}
}

// schedule is what simulate --json writes with a schedule that failed.
func schedule(t *testing.T) string {
	t.Helper()
	c := clitest.New(t, "simulate", "restart-amnesia", "--seeds", "20", "--json")
	c.Begin().WantExit(0)
	c.WantStdout("failing_schedule")
	return c.Out.String()
}
