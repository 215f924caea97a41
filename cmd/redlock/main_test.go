package main

import (
	"flag"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == beDeaf {
		deafProcess(os.Args[2])
	}
	if slices.Contains(os.Args[1:], "supervise") { // the command calls itself
		main()
	}
	clitest.BecomeTheCommand(main)
	// Most tests wait, for processes and for the end of a TTL. -parallel on the command
	// line is heard after this.
	flag.Set("test.parallel", "8")
	// Under nohup, HUP is ignored, and redlock leaves it so. What is caught here is
	// not ignored by the processes that we start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	goleak.VerifyTestMain(m)
}

func TestEvery_help_fits_the_terminal(t *testing.T) { clitest.WantEveryHelpToFit(t, newRootCommand()) }

func TestCompletion_refuses_an_unknown_shell(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "completion", "tcsh").Begin()
	c.WantExit(cli.ExitUsage)
	c.WantStderr("completion tcsh: ", "bash, fish, powershell and zsh")
	if c.Out.Len() > 0 {
		t.Errorf("it prints\n%s", &c.Out)
	}
	clitest.New(t, "completion").Begin().WantExit(0)
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		c := clitest.New(t, "completion", shell).Begin()
		c.WantExit(0)
		c.WantStdout("redlock")
	}
}
