//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Of operations that fail no time is worth anything. Here no lock can be extended.
func TestBenchNamesTheCasesInWhichOperationsFailed(t *testing.T) {
	masters := redistest.StartN(t, 1, redistest.User("ann", "pw", "+@all", "-evalsha", "-eval", "~*", "&*"))
	c := redlockCommand(t, "bench", "--quick", "--json", "--nodes", masters[0].URL(), "--only", "extend")
	c.start().wantExit(exitFailure)
	c.wantStderr("bench: operations failed: extend with ")
	if n := strings.Count(c.stderr.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, &c.stderr)
	}
	if !json.Valid(c.stdout.Bytes()) {
		t.Errorf("no report:\n%s", &c.stdout)
	}
}

func TestBenchEndsWellWhenEverythingWorked(t *testing.T) {
	masters := redistest.StartN(t, 1)
	c := redlockCommand(t, "bench", "--quick", "--nodes", masters[0].Addr(), "--only", "pair/1")
	c.start().wantExit(0)
}
