//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

// beDeaf in the arguments makes the test binary a command that nothing but
// SIGKILL ends, with a child that is the same. Each writes down when it was last
// alive, and when it got SIGTERM.
const beDeaf = "be-deaf"

// deaf ends the arguments of redlock run with that command.
func deaf(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--", self, beDeaf, "outer"}
}

func deafProcess(name string) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	if name == "outer" {
		if err := exec.Command(os.Args[0], beDeaf, "inner").Start(); err != nil {
			panic(err)
		}
	}
	for beat := time.Tick(5 * time.Millisecond); ; {
		select {
		case <-terminated:
			writeDownNow("term." + name)
		case <-beat:
			writeDownNow("beat." + name)
		}
	}
}

// writeDownNow replaces the file at once, or a process that is killed would leave
// an empty one.
func writeDownNow(file string) {
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	if os.WriteFile(file+".new", []byte(now), 0o600) == nil {
		os.Rename(file+".new", file)
	}
}

// latest returns the latest of the instants in the files.
func latest(c *clitest.Command, files ...string) (at time.Time) {
	c.T.Helper()
	for _, file := range files {
		ns, err := strconv.ParseInt(c.Content(file), 10, 64)
		if err != nil {
			c.T.Fatal(err)
		}
		if when := time.Unix(0, ns); when.After(at) {
			at = when
		}
	}
	return at
}
