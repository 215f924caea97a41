package main

import (
	"os"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// intoFull has the process write to a disk that is full.
func (c *command) intoFull() *command {
	c.t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { full.Close() })
	c.Stdout = full
	return c
}

// Whoever reads the file must not take it for an answer, and 64 would say that no
// master was asked.
func TestAnAnswerThatCannotBeWrittenIsAFailure(t *testing.T) {
	masters := redistest.StartN(t, 3)
	set(t, masters, "held", "web1:42/nonce/7", "PX", 600000)
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
		c := onMasters(t, masters, append(args, "--node-timeout", "5s")...).intoFull().start()
		if code := c.end(); code != exitFailure {
			t.Errorf("%q: exit code %d, want %d\n%s", args, code, exitFailure, &c.stderr)
		}
		c.wantStderr("no space left on device")
	}
}

// A script that waits for the value would wait for ever.
func TestHoldDoesNotKeepALockThatNobodyKnowsOf(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, kind := range []string{"--fair", "--fenced"} {
		c := runOn(t, masters, "--hold", kind, "name").intoFull().start()
		c.wantExit(exitFailure)
		c.wantStderr(`lock "name"`, "released", "no space left on device")
		wantFree(t, masters, "name")
	}
}
