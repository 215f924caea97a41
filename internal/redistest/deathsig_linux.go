package redistest

import "syscall"

// dieWithParent has the kernel kill the child when the thread that forked it
// ends, however that happens.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
