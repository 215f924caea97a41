package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a command in a process group of its own: what is signalled reaches
// also the processes that it started, unless they left the group.
type group struct {
	id      int                     // of the group, and of the command
	changes chan syscall.WaitStatus // the command was stopped; at last, it ended
}

// startGroup runs the command at path, in the foreground of the terminal if it
// is offered.
func startGroup(path string, argv, env []string, t *terminal) (*group, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if t.offered() {
		attr.Foreground, attr.Ctty, t.lent = true, t.fd(), true
	}
	// A command outlives the wrapper that renews its lock for no good. The kernel
	// watches the thread that forked, so this goroutine keeps its thread.
	runtime.LockOSThread()
	dieWithParent(attr)
	adoptOrphans()

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
			status = exitFailure << 8
		}
		g.changes <- status
		if !status.Stopped() {
			return
		}
	}
}

// signal sends sig to every process of the group.
func (g *group) signal(sig syscall.Signal) { syscall.Kill(-g.id, sig) }

// terminate asks every process of the group to end, also a stopped one, which
// would not hear it.
func (g *group) terminate() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

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

// codeAfter is the exit code that stands for a command's end.
func codeAfter(status syscall.WaitStatus) int {
	if status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return status.ExitStatus()
}
