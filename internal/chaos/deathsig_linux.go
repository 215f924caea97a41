package chaos

import "syscall"

// dieWithParent has the kernel kill the child, also a stopped one, when the
// thread that forked it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
