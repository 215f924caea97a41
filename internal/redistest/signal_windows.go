package redistest

import (
	"os"
	"syscall"
)

// Windows stops no process: sending these fails.
var (
	stopSignal     os.Signal = syscall.Signal(-1)
	continueSignal os.Signal = syscall.Signal(-1)
)

func ownGroup(*syscall.SysProcAttr) {}
