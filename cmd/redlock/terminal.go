//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal. It listens to one process group at a
// time, the foreground; another group is stopped when it reads from it. The
// command has a group of its own, so the terminal is lent to it, and taken back
// when the command stops or ends.
//
// A nil *terminal is that of a process that has none.
type terminal struct {
	tty   *os.File
	group int         // ours
	modes *term.State // as we found them
	lent  bool
}

// openTerminal returns nil without a terminal.
func openTerminal() *terminal {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &terminal{tty: tty, group: unix.Getpgrp()}
	t.modes, _ = term.GetState(t.fd())
	return t
}

func (t *terminal) fd() int { return int(t.tty.Fd()) }

// ours reports whether the terminal listens to our group.
func (t *terminal) ours() bool { return t.listensTo(t.group) }

func (t *terminal) listensTo(group int) bool {
	if t == nil {
		return false
	}
	now, err := unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP)
	return err == nil && now == group
}

// offered reports whether the command is to have the terminal from the start:
// when it is all that runs there. Beside others of our group, a pager or a
// script, it gets the terminal when it reads from it: ^C is for all of them.
func (t *terminal) offered() bool {
	alone := unix.Getpid() == unix.Getpgrp() && term.IsTerminal(0) && term.IsTerminal(1)
	return alone && t.ours()
}

// lend makes the terminal listen to the group, if it listens to ours.
func (t *terminal) lend(group int) bool {
	if !t.ours() {
		return false
	}
	t.lent = t.give(group)
	return t.lent
}

// reclaim takes the terminal back from the group and reports whether the group
// had it.
func (t *terminal) reclaim(group int) bool {
	if t == nil || !t.lent {
		return false
	}
	t.lent = false
	if t.listensTo(group) {
		t.give(t.group)
	}
	return true
}

func (t *terminal) give(group int) bool {
	return unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, group) == nil
}

// tidy undoes what a killed command had done to the modes.
func (t *terminal) tidy() {
	if t != nil && t.modes != nil && t.ours() {
		term.Restore(t.fd(), t.modes)
	}
}

// suspend stops the processes of target (0: our group), us among them, and
// returns when we are continued. It uses SIGTTIN: SIGTSTP does not stop a Go
// program that has once been notified of it.
func suspend(target int) {
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
