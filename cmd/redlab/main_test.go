package main

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.BecomeTheCommand(main)
	// Those that are parallel wait: for the pace of a demo. -parallel on the command line is
	// heard after this.
	flag.Set("test.parallel", "8")
	goleak.VerifyTestMain(m)
}

func TestEvery_help_fits_the_terminal(t *testing.T) { clitest.WantEveryHelpToFit(t, newRootCommand()) }

// Real masters never become part of a show or a benchmark because a variable is set, and
// the simulator has none.
func TestNothing_is_taken_from_the_environment(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		c := clitest.New(t, cmd.Name(), "--help")
		c.Env = append(c.Env, "REDLOCK_NODES=a:6379,b:6379,c:6379", "REDLOCK_TTL=forever")
		c.Begin().WantExit(0)
	}
}

func TestBad_usage_is_refused(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"demo", "--ttl", "1ms"}, "--ttl 1ms: must be from 1s to 1m"},
		{[]string{"simulate", "--seed", "-1"}, `--seed "-1": must be a whole number that is not negative`},
		{[]string{"simulate", "--nodes", "-1"}, "redlab: --nodes -1: must be from 1 to 26"},
		{[]string{"simulat"}, "did you mean: simulate"},
	} {
		c := clitest.New(t, test.args...).Begin()
		c.WantExit(cli.ExitUsage)
		c.WantStderr(test.says)
	}
}
