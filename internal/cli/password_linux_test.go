package cli

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

// Else a process, or its entry, would be left behind at every attempt: redlock run inherits it.
func TestPassword_command_that_hangs_is_ended_with_what_it_has_started(t *testing.T) {
	t.Parallel()
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pid := 0
	go func() {
		defer cancel()
		clitest.Eventually(time.Minute, func() bool {
			said, _ := os.ReadFile(file)
			pid, _ = strconv.Atoi(strings.TrimSuffix(string(said), "\n"))
			return strings.HasSuffix(string(said), "\n")
		})
	}()
	asksCommand(t, ctx, "sleep 100 & echo $! >"+file+"; wait")
	if pid == 0 || !clitest.Eventually(50*time.Second, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }) {
		t.Errorf("process %d is left", pid)
	}
}
