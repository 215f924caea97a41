//go:build unix

package procgroup

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Terminal is the controlling terminal. It listens to one process group at a
// time, the foreground; another group is stopped when it reads from it. The
// command has a group of its own, so the terminal is lent to it, and taken back
// when the command stops or ends.
//
// A nil *Terminal is that of a process that has none.
type Terminal struct {
	tty   *os.File
	group int         // ours
	modes *term.State // as we found them
	lent  bool
}

// OpenTerminal returns nil without a terminal.
func OpenTerminal() *Terminal {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &Terminal{tty: tty, group: unix.Getpgrp()}
	t.modes, _ = term.GetState(t.fd())
	return t
}

func (t *Terminal) fd() int { return int(t.tty.Fd()) }

// ours reports whether the terminal listens to our group.
func (t *Terminal) ours() bool { return t.listensTo(t.group) }

func (t *Terminal) listensTo(group int) bool {
	if t == nil {
		return false
	}
	now, err := unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP)
	return err == nil && now == group
}

// offered reports whether the command is to have the terminal from the start:
// when it is all that runs there. Beside others of our group, a pager or a
// script, it gets the terminal when it reads from it: ^C is for all of them.
func (t *Terminal) offered() bool {
	alone := unix.Getpid() == unix.Getpgrp() && term.IsTerminal(0) && term.IsTerminal(1)
	return alone && t.ours()
}

// Lend makes the terminal listen to the group, if it listens to ours.
func (t *Terminal) Lend(group int) bool {
	if !t.ours() {
		return false
	}
	t.lent = t.give(group)
	return t.lent
}

// Reclaim takes the terminal back from the group and reports whether the group
// had it.
func (t *Terminal) Reclaim(group int) bool {
	if t == nil || !t.lent {
		return false
	}
	t.lent = false
	if t.listensTo(group) {
		t.give(t.group)
	}
	return true
}

func (t *Terminal) give(group int) bool {
	return unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, group) == nil
}

// Tidy undoes what a killed command had done to the modes.
func (t *Terminal) Tidy() {
	if t != nil && t.modes != nil && t.ours() {
		term.Restore(t.fd(), t.modes)
	}
}

// Suspend stops the processes of target (0: our group), us among them, and
// returns when we are continued. It uses SIGTTIN: SIGTSTP does not stop a Go
// program that has once been notified of it.
func Suspend(target int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(target, syscall.SIGTTIN)
	select {
	case <-continued:
	case <-time.After(orphaned):
	}
}

// orphaned is how long we wait to be continued before we conclude that the kernel did
// not stop us: it spares a group that no process would continue.
const orphaned = 200 * time.Millisecond
