// Package child starts processes that end with ours.
package child

import (
	"os/exec"
	"runtime"
)

// Start starts a process. The channel is closed when it has ended and was waited for. It is
// in a process group of its own, because ^C at a terminal is for us. On Linux the kernel
// kills it when our process ends, however that happens, and also if it is stopped.
func Start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = attributes()
	over, started := make(chan struct{}), make(chan error)
	go func() {
		// The kernel takes the thread that forked for the parent, and Go ends idle
		// threads: this one waits for the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(over)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // its outcome is in cmd.ProcessState
		}
	}()
	return over, <-started
}
