//go:build unix

package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// warnSignal is the signal that tells the command that its lock is at risk: a flag. Zero is none.
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
	if !slices.Contains(forwarded, os.Signal(sig)) {
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
	s.group.signal(syscall.Signal(s.warns))
}
