package redlock_test

import (
	"context"
	"fmt"
	"log"
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

func ExampleGroups() {
	ctx := context.Background()
	masters := map[string][]string{
		"a": {"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"},
		"b": {"10.0.1.1:6379", "10.0.1.2:6379", "10.0.1.3:6379"},
	}
	// Once, by an operator, after redlock.Init of each group.
	if _, err := redlock.Spread(ctx, masters, []string{"a", "b"}); err != nil {
		log.Fatal(err)
	}

	var clients []*redlock.Client
	for name, addrs := range masters {
		client, err := redlock.Dial(ctx, addrs, redlock.WithGroup(name), redlock.WithSpread())
		if err != nil {
			log.Fatal(err)
		}
		clients = append(clients, client)
	}
	groups, err := redlock.NewGroups(clients...)
	if err != nil {
		log.Fatal(err)
	}
	defer groups.Close()
	lease, err := groups.Mutex("orders:4711").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
}
