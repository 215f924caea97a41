package redistest

import "syscall"

// Windows stops no process: sending these fails.
const stopSignal, continueSignal = syscall.Signal(-1), syscall.Signal(-1)
