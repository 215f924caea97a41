//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Of operations that fail no time is worth anything. Here no arrival can be reported.
func TestBench_names_the_cases_in_which_operations_failed(t *testing.T) {
	masters := redistest.StartN(t, 1, redistest.User("ann", "pw", "+@all", "-evalsha", "-eval", "~*", "&*"))
	c := clitest.New(t, "bench", "--quick", "--json", "--nodes", masters[0].URL(), "--only", "kinds/latch")
	c.Begin().WantExit(cli.ExitFailure)
	c.WantStderr("bench: not as it should be: kinds/latch with ")
	if n := strings.Count(c.Errors.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, &c.Errors)
	}
	if !json.Valid(c.Out.Bytes()) {
		t.Errorf("no report:\n%s", &c.Out)
	}
}

func TestBench_ends_well_when_everything_worked(t *testing.T) {
	masters := redistest.StartN(t, 1)
	c := clitest.New(t, "bench", "--quick", "--nodes", masters[0].Addr(), "--only", "pair/1")
	c.Begin().WantExit(0)
}
