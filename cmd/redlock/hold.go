//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorumlock/quorumlock/internal/cli"
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
	defer o.warnOfOthers(client, name)()
	if err := printValue(stdout, lease); err != nil {
		return cmp.Or(o.release(lease), fmt.Errorf("lock %q: released, since its value cannot be written: %w", name, err))
	}
	if cli.IsTerminal(o.stderr) {
		fmt.Fprintf(o.stderr, "redlock: holding %s until ^C\n", cli.Printable(name))
	}
	if err := untilReleased(lease, signals); err != nil {
		return err
	}
	return o.release(lease)
}

// release gives the lock up. It returns an error if the lock was lost before.
func (o *runOptions) release(lease *redlock.Lease) error {
	switch err := lease.Unlock(context.Background()); {
	case errors.Is(err, redlock.ErrLost), errors.Is(err, redlock.ErrExpired):
		return cli.Fail(cli.ExitLost, err)
	case err != nil:
		cli.Complain(o.stderr, fmt.Errorf("%w: the lock stays until its TTL has passed", err))
	}
	return nil
}

// printValue prints the value and the token, for a script that waits for the lock.
func printValue(stdout io.Writer, lease *redlock.Lease) error {
	lines := cli.Plain(lease.Value()) + "\n"
	if token := lease.Token(); token > 0 {
		lines += fmt.Sprintln(token)
	}
	_, err := io.WriteString(stdout, lines)
	return err
}

// untilReleased waits for a signal that asks for the release, or for the loss.
func untilReleased(lease *redlock.Lease, signals <-chan os.Signal) error {
	for {
		select {
		case <-lease.Done():
			return cli.Fail(cli.ExitLost, fmt.Errorf("lock %q: %w", lease.Name(), lease.Err()))
		case sig := <-signals:
			if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
				return nil
			}
		}
	}
}
