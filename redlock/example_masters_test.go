package redlock_test

import (
	"fmt"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// exampleMasters gives an example a client of five masters in memory.
func exampleMasters(opts ...redlock.Option) (*redlock.Client, *redlocktest.Masters, func()) {
	e := &example{}
	client, masters := redlocktest.New(e, opts...)
	return client, masters, e.end
}

func exampleClient(opts ...redlock.Option) (*redlock.Client, func()) {
	client, _, end := exampleMasters(opts...)
	return client, end
}

// example is as much of a test as redlocktest needs.
type example struct {
	testing.TB
	cleanups []func()
}

func (e *example) Helper()          {}
func (e *example) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }

// What is left behind shows in the output, which is then not the one wanted.
func (e *example) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (e *example) end() {
	for _, f := range e.cleanups {
		f()
	}
}
