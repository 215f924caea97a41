//go:build unix

package main

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Five crons whose clocks are some seconds apart: each begins when the one before has long
// ended its job, and only the first runs it.
func TestReal_S73_at_least_runs_the_job_once_per_period(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	first := clitest.RunOn(t, masters, append([]string{"--at-least", "1m", "nightly"}, clitest.Sh("exit 7")...)...)
	first.Begin().WantExit(7)
	for range 4 {
		cron := clitest.RunOn(t, masters, append([]string{"--at-least", "1m", "nightly"}, clitest.Sh("exit 7")...)...)
		cron.Begin().WantExit(cli.ExitBusy)
		cron.WantStderr("nightly", "is taken: unlocked by", "and kept for another", "; until ", " at least")
	}
	one, all := clitest.OnMasters(t, masters, "status", "nightly"), clitest.OnMasters(t, masters, "status")
	one.Begin().WantExit(0)
	one.WantStdout("nightly: unlocked by", "and kept for another")
	all.Begin().WantExit(0)
	all.WantStdout("nightly", "kept: ")
	clitest.OnMasters(t, masters, "unlock", "--force", "--yes", "nightly").Begin().WantExit(0)
}

func TestRun_at_least_refuses_what_cannot_be_kept(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "run", "--nodes", "localhost:1", "--restart-guard", "30s", "--at-least", "1m", "name", "--", "true")
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr("at-least", "1m0s", "restart guard 30s")
}
