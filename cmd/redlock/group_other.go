//go:build unix && !linux

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// group is a command in a process group of its own. A signal also reaches the
// processes that it started, unless they left the group. They go on when we are killed
// or stand still.
type group struct {
	id      int                     // of the group, and of the command
	changes chan syscall.WaitStatus // the command was stopped; at last, it ended
}

func platformCommands() []*cobra.Command { return nil }

// startGroup runs the command at path, in the foreground of the terminal if it
// is offered.
func startGroup(path string, argv, env []string, t *terminal, _ time.Duration) (*group, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if t.offered() {
		attr.Foreground, attr.Ctty, t.lent = true, t.fd(), true
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attr,
	})
	if err != nil {
		return nil, err
	}
	g := &group{id: p.Pid, changes: make(chan syscall.WaitStatus)}
	p.Release() // package os does not report stops
	go g.watch()
	return g, nil
}

// watch reports every stop of the command, and its end.
func (g *group) watch() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(g.id, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // it cannot be waited for: it is gone, and how is unknown
			status = cli.ExitFailure << 8
		}
		g.changes <- status
		if !status.Stopped() {
			return
		}
	}
}

// kill ends every process of the group.
func (g *group) kill() { g.signal(syscall.SIGKILL) }

// empty reports whether no process of the group is left. It may be called when
// the end of the command itself was reported.
func (g *group) empty() bool {
	for {
		pid, err := syscall.Wait4(-g.id, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	return syscall.Kill(-g.id, 0) == syscall.ESRCH
}

// No supervisor would end the command in our place.
func deadline(*redlock.Lease, time.Duration) time.Duration { return 0 }
func (g *group) renew(time.Duration)                       {}
func (g *group) expired() bool                             { return false }
func (g *group) leave()                                    {}
