//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// endWhole has a command that is ended take with it what it has started: it gets a process group
// of its own.
func endWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// reap waits for what the command has left behind and we have inherited, as redlock run does.
func reap(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	for {
		if _, err := syscall.Wait4(-cmd.Process.Pid, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}
