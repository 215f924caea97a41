package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/quorumlock/quorumlock/redlock"
)

// These are the exit codes, those of sysexits.h where one fits, so that they seldom
// collide with a command's own.
const (
	exitFailure  = 1   // the attempt did not succeed, or the answer cannot be written
	exitUsage    = 64  // EX_USAGE: the command line makes no sense; nothing was asked of any node
	exitNoQuorum = 69  // EX_UNAVAILABLE: too few nodes answered
	exitLost     = 74  // EX_IOERR: the lock was lost, or about to be, while the command ran
	exitBusy     = 75  // EX_TEMPFAIL: another client holds the lock
	exitConfig   = 78  // EX_CONFIG: the masters refuse us as we are configured, or the lock is configured otherwise
	exitNotRun   = 126 // the command cannot be executed, as the shell has it
	exitNotFound = 127 // there is no such command, as the shell has it
	exitSignal   = 128 // plus the number of the signal that ended the command, or us
)

// exit is an error with its exit code. Without an error nothing is printed.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

// codeOf returns the exit code for what a command returned.
func codeOf(err error) int {
	if e := new(exit); errors.As(err, &e) {
		return e.code
	}
	return exitFailure
}

// failed gives an error of the library its exit code. An error that is not of a lock
// was found before any node was asked.
func failed(err error) error {
	switch {
	case misconfigured(err), errors.Is(err, redlock.ErrPermits):
		return &exit{exitConfig, err}
	case errors.Is(err, redlock.ErrTaken):
		return &exit{exitBusy, err}
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrExpired), errors.Is(err, context.DeadlineExceeded):
		return &exit{exitNoQuorum, err}
	case errors.Is(err, context.Canceled):
		return &exit{exitSignal + int(syscall.SIGINT), err}
	case errors.As(err, new(*redlock.Error)):
		return &exit{exitFailure, err}
	}
	return refusal(err, nil)
}
