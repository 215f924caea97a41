//go:build unix

// Package procgroup runs the command of redlock run in a process group of its own. On Linux all
// that the command has started is dead by a deadline, also when we are killed or stand still.
package procgroup

import (
	"os"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
)

const (
	// Patience is how long the remains of a command may take to end.
	Patience = 5 * time.Second
	// Poll is how often they are looked for, and killed.
	Poll = 5 * time.Millisecond
	// LongestNap bounds how long a deadline goes unwatched: timers stand still while the machine
	// is suspended.
	LongestNap = time.Second
)

// Forwarded are the signals that are meant for the command.
var Forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// Signal sends sig to every process of the group.
func (g *Group) Signal(sig syscall.Signal) { syscall.Kill(-g.ID, sig) }

// Terminate asks every process of the group to end, also a stopped one, which
// would not hear it.
func (g *Group) Terminate() {
	g.Signal(syscall.SIGTERM)
	g.Signal(syscall.SIGCONT)
}

// Code is the exit code that stands for a command's end.
func Code(status syscall.WaitStatus) int {
	if status.Signaled() {
		return cli.ExitSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
