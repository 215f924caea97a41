//go:build unix

package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/cmd/redlock/internal/procgroup"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// warnSignal is a signal that tells the command of its lock: that it is at risk, or asked for. It is
// a flag. Zero is none.
type warnSignal syscall.Signal

// Type implements pflag.Value.
func (w *warnSignal) Type() string { return "signal" }

// String implements pflag.Value.
func (w *warnSignal) String() string {
	return strings.TrimPrefix(unix.SignalName(syscall.Signal(*w)), "SIG")
}

// Set implements pflag.Value.
func (w *warnSignal) Set(s string) error {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG"))
	if !slices.Contains(procgroup.Forwarded, os.Signal(sig)) {
		return errors.New("must be HUP, INT, QUIT, TERM, USR1 or USR2")
	}
	*w = warnSignal(sig)
	return nil
}

// alert warns the command, if that was asked for: its lock was not renewed for half of its
// validity, but may still be.
func (s *session) alert() {
	if s.ended || s.warned {
		return
	}
	s.say("not renewed for half of its validity: sending SIG%v", &s.warns)
	s.group.Signal(syscall.Signal(s.warns))
}

// pass notifies the command of a request for its lock.
func (s *session) pass(r redlock.Request) {
	if s.ended || s.warned {
		return
	}
	s.say("%s asks for its release: %q: sending SIG%v", cli.Printable(r.Client), r.Reason, &s.requests)
	s.group.Signal(syscall.Signal(s.requests))
}
