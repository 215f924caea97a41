package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the command when we are killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes us the parent of what the command leaves behind, so that
// it can be waited for. An old kernel that cannot leaves it to init.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
