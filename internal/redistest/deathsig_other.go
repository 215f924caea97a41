//go:build !linux

package redistest

import "syscall"

// dieWithParent needs Linux: elsewhere a killed test process leaves its
// servers behind.
func dieWithParent(*syscall.SysProcAttr) {}
