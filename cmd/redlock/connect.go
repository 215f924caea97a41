//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// reconnectPause is how long to wait before trying masters again that are down.
const reconnectPause = 500 * time.Millisecond

// lock connects and takes the lock, unless a signal comes first.
func (o *runOptions) lock(name string, signals chan os.Signal) (*redlock.Client, *redlock.Lease, error) {
	ctx, done := untilSignal(signals)
	start := time.Now()
	client, err := o.connect(ctx)
	if err != nil {
		return nil, nil, cmp.Or(done(), cli.Failed(err))
	}
	if o.wait != 0 {
		o.Notices.Show()
	}
	waiting := o.announce(client, name)
	lease, err := o.wait.lock(ctx, o.take(client, name), start)
	waiting.end()
	if !errors.Is(err, redlock.ErrNoQuorum) {
		o.Notices.Show()
	}
	if err == nil {
		if err = done(); err == nil {
			return client, lease, nil
		}
		lease.Unlock(context.Background())
	} else if err = cmp.Or(done(), cli.Failed(err)); cli.CodeOf(err) == cli.ExitBusy {
		err = cli.Fail(o.conflictCode, describe(client, name, err))
	}
	client.Close()
	return nil, nil, err
}

// connect connects to a quorum of the masters, and tries again for as long as we may
// wait. Masters that refuse us are not asked again.
func (o *runOptions) connect(ctx context.Context) (*redlock.Client, error) {
	if o.wait != forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(time.Duration(o.wait), cli.ConnectPatience))
		defer cancel()
	}
	for told := false; ; told = true {
		client, err := o.Dial(ctx, o.stderr, append(o.options(), redlock.WithObserver(o.observe))...)
		if o.wait == 0 || !errors.Is(err, redlock.ErrNoQuorum) || cli.Misconfigured(err) || ctx.Err() != nil {
			return client, err
		}
		if !told {
			cli.Complain(o.stderr, fmt.Errorf("%w; trying again", err))
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reconnectPause):
		}
	}
}

// describe tells who holds the lock, if that can be found out.
func describe(client *redlock.Client, name string, busy error) error {
	h, err := client.Inspect(context.Background(), name)
	if err != nil || !h.Held {
		return busy
	}
	who := holder(h)
	if h.Waiting > 0 {
		who += fmt.Sprintf("; %d waiting", h.Waiting)
	}
	return fmt.Errorf("lock %q is taken: %s", name, who)
}
