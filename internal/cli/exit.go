package cli

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
	ExitFailure  = 1   // the attempt did not succeed, or the answer cannot be written
	ExitUsage    = 64  // EX_USAGE: the command line makes no sense; nothing was asked of any node
	ExitNoQuorum = 69  // EX_UNAVAILABLE: too few nodes answered
	ExitLost     = 74  // EX_IOERR: the lock was lost, or about to be, while the command ran
	ExitBusy     = 75  // EX_TEMPFAIL: another client holds the lock
	ExitConfig   = 78  // EX_CONFIG: the masters refuse us as we are configured, or the lock is configured otherwise
	ExitNotRun   = 126 // the command cannot be executed, as the shell has it
	ExitNotFound = 127 // the command does not exist, as the shell has it
	ExitSignal   = 128 // plus the number of the signal that ended the command, or us
)

// Exit is an error with its exit code. Without an error nothing is printed.
type Exit struct {
	code int
	err  error
}

func (e *Exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *Exit) Unwrap() error { return e.err }

func Usage(format string, args ...any) error {
	return &Exit{ExitUsage, fmt.Errorf(format, args...)}
}

// Fail returns an error with an exit code. A nil err prints nothing.
func Fail(code int, err error) error { return &Exit{code, err} }

// CodeOf returns the exit code for what a command returned.
func CodeOf(err error) int {
	if e := new(Exit); errors.As(err, &e) {
		return e.code
	}
	return ExitFailure
}

// Failed gives an error of the library its exit code. An error that is not of a lock
// was found before any node was asked.
func Failed(err error) error {
	switch {
	case errors.As(err, new(*Exit)):
		return err // it has one
	case Misconfigured(err), errors.Is(err, redlock.ErrPermits):
		return &Exit{ExitConfig, err}
	case errors.Is(err, redlock.ErrTaken):
		return &Exit{ExitBusy, err}
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrMoved), errors.Is(err, redlock.ErrExpired), errors.Is(err, context.DeadlineExceeded):
		return &Exit{ExitNoQuorum, err}
	case errors.Is(err, context.Canceled):
		return &Exit{ExitSignal + int(syscall.SIGINT), err}
	case errors.As(err, new(*redlock.Error)):
		return &Exit{ExitFailure, err}
	}
	return Refusal(err, nil)
}
