package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestHoldKeepsTheLockUntilASignal(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, "--hold", "--metadata", "maintenance", "name").start()
	c.until("every master has the lock", func() bool {
		for _, value := range holders(t, masters, "name") {
			if !strings.HasSuffix(value, "maintenance") {
				return false
			}
		}
		return true
	})
	busy := runOn(t, masters, append([]string{"--conflict-exit-code", "9", "name"}, sh("true")...)...)
	busy.start().wantExit(9)

	c.signal(syscall.SIGTERM)

	c.wantExit(0)
	c.wantStdout("maintenance")
	wantFree(t, masters, "name")
}

func TestHoldEndsWhenTheLockIsLost(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, "--hold", "--ttl", "1s", "name").start()
	c.until("it holds the lock", func() bool { return holders(t, masters, "name")[0] != "" })
	for _, s := range masters {
		s.Do("DEL", "name")
	}
	c.wantExit(exitLost)
	c.wantStderr("lost")
}
