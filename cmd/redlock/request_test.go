package main

import (
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestRun_passes_a_request_for_the_lock_on_to_the_command(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"--on-request", "usr1", "name"},
		clitest.Sh(`trap "echo yes >asked" USR1; echo yes >started; while test ! -e end; do sleep 0.05; done; exit 9`)...)...).Begin()
	c.Content("started")

	ask := clitest.OnMasters(t, masters, "unlock", "--ask", "--reason", "a new version\nis here", "name").Begin()
	ask.WantExit(0)
	ask.WantStdout("name: its holder was asked to release it")

	c.Content("asked")
	if err := os.WriteFile(c.File("end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.WantExit(9)
	c.WantStderr(`lock "name": `, `asks for its release: "a new version\nis here": sending SIGUSR1`)
	clitest.WantFree(t, masters, "name")
}

func TestUnlock_ask_of_a_lock_that_nobody_holds(t *testing.T) {
	t.Parallel()
	c := clitest.OnMasters(t, redistest.StartN(t, 3), "unlock", "--ask", "name").Begin()
	c.WantExit(cli.ExitFailure)
	c.WantStderr("not held")
}

func TestUnlock_ask_with_flags_that_make_no_sense(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1)
	for _, test := range [][]string{
		{"exclude each other", "unlock", "--ask", "--force", "name"},
		{"--yes is for --force", "unlock", "--ask", "--yes", "name"},
		{"--reason is for --ask", "unlock", "--force", "--yes", "--reason", "x", "name"},
		{"at most 1024", "unlock", "--ask", "--reason", strings.Repeat("x", 1025), "name"},
		{"must be HUP", "run", "--on-request", "KILL", "name", "--", "true"},
		{"--hold has none", "run", "--hold", "--on-request", "TERM", "name"},
	} {
		c := clitest.OnMasters(t, masters, test[1:]...).Begin()
		c.WantExit(cli.ExitUsage)
		c.WantStderr(test[0])
	}
}
