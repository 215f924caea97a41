package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestHold_keeps_the_lock_until_a_signal(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, "--hold", "--metadata", "maintenance", "name").Begin()
	c.Until("every master has the lock", func() bool {
		for _, value := range clitest.Holders(t, masters, "name") {
			if !strings.HasSuffix(value, "maintenance") {
				return false
			}
		}
		return true
	})
	busy := clitest.RunOn(t, masters, append([]string{"--conflict-exit-code", "9", "name"}, clitest.Sh("true")...)...)
	busy.Begin().WantExit(9)

	c.Signal(syscall.SIGTERM)

	c.WantExit(0)
	c.WantStdout("maintenance")
	clitest.WantFree(t, masters, "name")
}

func TestHold_ends_when_the_lock_is_lost(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, "--hold", "--ttl", "1s", "name").Begin()
	c.Until("it holds the lock", func() bool { return clitest.Holders(t, masters, "name")[0] != "" })
	for _, s := range masters {
		s.Do("DEL", "name")
	}
	c.WantExit(cli.ExitLost)
	c.WantStderr("lost")
}
