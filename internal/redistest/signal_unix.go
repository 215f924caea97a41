//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// How a server is stopped and continued.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)

// ownGroup puts the server into a process group of its own: ^C at a terminal is
// for us, who then kill it.
func ownGroup(attr *syscall.SysProcAttr) { attr.Setpgid = true }
