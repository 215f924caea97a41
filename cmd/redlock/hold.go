//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorumlock/quorumlock/redlock"
)

// hold takes the lock and keeps it until a signal ends us. It prints the lock's value
// once the lock is held, so that a script knows.
func (o *runOptions) hold(name string, stdout io.Writer) error {
	signals := listen()
	defer signal.Stop(signals)
	client, lease, err := o.lock(name, signals)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintln(stdout, plain(lease.Value()))
	if token := lease.Token(); token > 0 {
		fmt.Fprintln(stdout, token)
	}
	if isTerminal(o.stderr) {
		fmt.Fprintf(o.stderr, "redlock: holding %s until ^C\n", printable(name))
	}
	if err := untilReleased(lease, signals); err != nil {
		return err
	}
	switch err := lease.Unlock(context.Background()); {
	case errors.Is(err, redlock.ErrLost), errors.Is(err, redlock.ErrExpired):
		return &exit{exitLost, err}
	case err != nil:
		complain(o.stderr, fmt.Errorf("%w: the lock stays until its TTL has passed", err))
	}
	return nil
}

// untilReleased waits for a signal that asks for the release, or for the loss.
func untilReleased(lease *redlock.Lease, signals <-chan os.Signal) error {
	for {
		select {
		case <-lease.Done():
			return &exit{exitLost, fmt.Errorf("lock %q: %w", lease.Name(), lease.Err())}
		case sig := <-signals:
			if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
				return nil
			}
		}
	}
}
