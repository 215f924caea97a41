package main

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// locker is a lock of any kind, taken for a command.
type locker interface {
	Lock(context.Context) (*redlock.Lease, error)
	TryLock(context.Context) (*redlock.Lease, error)
}

// rehearse refuses what the library would refuse, before any node is asked.
func rehearse(name string, lock redlock.LockOption, opts ...redlock.Option) error {
	err := rehearseLock(func(c *redlock.Client) locker { return c.Mutex(name, lock) }, opts...)
	if err != nil {
		return cli.Refusal(err, nil)
	}
	return nil
}

// rehearseLock is rehearse for any kind of lock. Its error is for refusal.
func rehearseLock(lock func(*redlock.Client) locker, opts ...redlock.Option) error {
	opts = append(opts, seam.Option(seam.Seams{Guarded: true}).(redlock.Option))
	made, err := seam.NewClient([]node.Node{unasked{}}, opts)
	if err != nil {
		return err
	}
	client := made.(*redlock.Client)
	defer client.Close()
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err = lock(client).TryLock(ended); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// unasked is a node that is never asked.
type unasked struct{}

func (unasked) Addr() string { return "nobody" }

func (unasked) Do(*wire.Command, func(wire.Reply)) {}

func (unasked) Subscribe(string, node.Listener) func() { return func() {} }

func (unasked) Close() error { return nil }
