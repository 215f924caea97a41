//go:build unix

package main

import (
	"syscall"

	"github.com/quorumlock/quorumlock/internal/cli"
)

// signal sends sig to every process of the group.
func (g *group) signal(sig syscall.Signal) { syscall.Kill(-g.id, sig) }

// terminate asks every process of the group to end, also a stopped one, which
// would not hear it.
func (g *group) terminate() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

// codeAfter is the exit code that stands for a command's end.
func codeAfter(status syscall.WaitStatus) int {
	if status.Signaled() {
		return cli.ExitSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
