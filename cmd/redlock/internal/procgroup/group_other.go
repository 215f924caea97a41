//go:build unix && !linux

package procgroup

import (
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli"
)

// Group is a command in a process group of its own. A signal also reaches the
// processes that it started, unless they left the group. They go on when we are killed
// or stand still.
type Group struct {
	ID      int                     // of the group, and of the command
	Changes chan syscall.WaitStatus // the command was stopped; at last, it ended
}

func Commands() []*cobra.Command { return nil }

// Start runs the command at path, in the foreground of the terminal if it
// is offered.
func Start(path string, argv, env []string, t *Terminal, _ time.Duration) (*Group, error) {
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
	g := &Group{ID: p.Pid, Changes: make(chan syscall.WaitStatus)}
	p.Release() // package os does not report stops
	go g.watch()
	return g, nil
}

// watch reports every stop of the command, and its end.
func (g *Group) watch() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(g.ID, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // it cannot be waited for: it is gone, and how is unknown
			status = cli.ExitFailure << 8
		}
		g.Changes <- status
		if !status.Stopped() {
			return
		}
	}
}

// Kill ends every process of the group.
func (g *Group) Kill() { g.Signal(syscall.SIGKILL) }

// Empty reports whether no process of the group is left. It may be called when
// the end of the command itself was reported.
func (g *Group) Empty() bool {
	for {
		pid, err := syscall.Wait4(-g.ID, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	return syscall.Kill(-g.ID, 0) == syscall.ESRCH
}

// No supervisor would end the command in our place.
func Deadline(func() time.Duration) time.Duration { return 0 }
func (g *Group) Renew(time.Duration)              {}
func (g *Group) Expired() bool                    { return false }
func (g *Group) Leave()                           {}
