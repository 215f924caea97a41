package main

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Whoever reads the file must not take it for an answer, and 64 would say that no
// master was asked.
func TestAn_answer_that_cannot_be_written_is_a_failure(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters, "held", "web1:42/nonce/7", "PX", 600000)
	for _, args := range [][]string{
		{"status", "held"},
		{"status", "held", "--json"},
		{"status", "held", "--watch"},
		{"status"},
		{"status", "--json"},
		{"status", "--prefix", "nothing:"},
		{"unlock", "--force", "--yes", "held"},
		{"init", "--prefix", "new:"},
	} {
		c := clitest.OnMasters(t, masters, append(args, "--node-timeout", "5s")...).IntoFull().Begin()
		if code := c.End(); code != cli.ExitFailure {
			t.Errorf("%q: exit code %d, want %d\n%s", args, code, cli.ExitFailure, &c.Errors)
		}
		c.WantStderr("no space left on device")
	}
}

// A script that waits for the value would wait for ever.
func TestHold_does_not_keep_a_lock_that_nobody_knows_of(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, kind := range []string{"--fair", "--fenced"} {
		c := clitest.RunOn(t, masters, "--hold", kind, "name").IntoFull().Begin()
		c.WantExit(cli.ExitFailure)
		c.WantStderr(`lock "name"`, "released", "no space left on device")
		clitest.WantFree(t, masters, "name")
	}
}
