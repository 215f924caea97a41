//go:build !linux

package chaos

import "syscall"

// dieWithParent does nothing: a client ends when its standard input does.
func dieWithParent(*syscall.SysProcAttr) {}
