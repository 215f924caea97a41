//go:build unix && !linux

package child

import "syscall"

// A killed process leaves its children behind here.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
