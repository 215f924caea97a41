//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestBench_shows_what_it_has_when_it_is_interrupted(t *testing.T) {
	c := clitest.New(t, "bench", "--quick", "--redis", "--masters", "1", "--only", "pair/1,handoff/relaxed", "--html", "page.html")
	tty := c.AtTerminal()
	tty.Shows("8 clients pass a lock on") // the first of the two is done

	tty.Enter("\x03")

	c.WantExit(cli.ExitSignal + int(syscall.SIGINT))
	tty.Shows("interrupted")
	tty.Shows("what was measured until now is all there is")
	tty.Shows("p99")
	if page := clitest.Read(t, c.File("page.html")); !strings.Contains(page, "redsync on one") {
		t.Error("the page does not show the first workload")
	}
}
