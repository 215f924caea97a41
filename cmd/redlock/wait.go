//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock/internal/procgroup"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// patience is how long to wait for a lock: a flag.
type patience time.Duration

const forever patience = -1

func (p *patience) Type() string { return "duration" }

func (p *patience) String() string {
	switch *p {
	case forever:
		return "forever"
	case 0:
		return "0"
	}
	return time.Duration(*p).String()
}

func (p *patience) Set(s string) error {
	if s == "forever" {
		*p = forever
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("must be 0 (try once), a duration such as 90s, or forever")
	}
	*p = patience(d)
	return nil
}

// lock takes the lock with this patience, counted from start.
func (p patience) lock(ctx context.Context, m locker, start time.Time) (*redlock.Lease, error) {
	if p == forever {
		return m.Lock(ctx)
	}
	left := time.Duration(p) - time.Since(start)
	if left <= 0 {
		return m.TryLock(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return m.Lock(ctx)
}

// listen returns the signals that are sent to us. Signals that we were started to
// ignore, by nohup say, stay ignored, for the command too.
func listen() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, sig := range procgroup.Forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// untilSignal returns a context that ends with the first signal, and a function
// that stops listening and returns the exit for the signal that came, if any.
func untilSignal(signals <-chan os.Signal) (context.Context, func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan error, 1)
	go func() {
		select {
		case sig := <-signals:
			cancel()
			came <- cli.Fail(cli.ExitSignal+int(sig.(syscall.Signal)), fmt.Errorf("%v while waiting for the lock", sig))
		case <-ctx.Done():
			came <- nil
		}
	}()
	return ctx, func() error {
		cancel()
		return <-came
	}
}
