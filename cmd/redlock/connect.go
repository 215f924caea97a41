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
	all := o.masters
	client, lease, err := o.acquireAt(ctx, all, name, start)
	for errors.Is(err, errDeclaredNew) || o.follows(ctx, err, start) {
		if client != nil {
			client.Close()
		}
		client, lease, err = o.acquireAt(ctx, all, name, start)
	}
	if client == nil {
		return nil, nil, cmp.Or(done(), cli.Failed(err))
	}
	if !errors.Is(err, redlock.ErrNoQuorum) {
		o.Notices.Show()
	}
	if err == nil {
		if err = done(); err == nil {
			return client, lease, nil
		}
		lease.Unlock(context.Background())
	} else if lacks := new(lackingRights); errors.As(err, &lacks) {
		err = cmp.Or(done(), lacks.failure())
	} else if o.sitsOut && isQuarantine(err) && !o.mayEndSoon(client) {
		err = cmp.Or(done(), cli.Fail(cli.ExitNoQuorum, &cli.Advised{Err: err, Advice: fmt.Sprintf("another client's restart guard is longer than ours, %v, so run does not sit it out: --wait forever does", o.guard)}))
	} else if err = cmp.Or(done(), cli.Failed(err)); cli.CodeOf(err) == cli.ExitBusy {
		err = cli.Fail(o.conflictCode, describe(client, name, err))
	}
	client.Close()
	return nil, nil, err
}

// acquireAt is acquire in the group that has the name, of all of these masters.
func (o *runOptions) acquireAt(ctx context.Context, all masters, name string, start time.Time) (*redlock.Client, *redlock.Lease, error) {
	at, err := all.settled(ctx, name)
	for told := false; o.follows(ctx, err, start); told = true {
		if !told {
			cli.Complain(o.stderr, fmt.Errorf("%w; trying again", err))
		}
		if passes(ctx, reconnectPause) {
			at, err = all.settled(ctx, name)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	at.believed = o.believed
	o.masters = at
	return o.acquire(ctx, name, start)
}

// follows reports whether we wait for a name that moves to another group of masters.
func (o *runOptions) follows(ctx context.Context, err error, start time.Time) bool {
	return errors.Is(err, redlock.ErrMoved) && ctx.Err() == nil && (o.wait == forever || time.Since(start) < time.Duration(o.wait))
}

// acquire connects and takes the lock. There is no client if it could not connect. It returns
// errDeclaredNew if a new client would not have to wait as this one does, and *lackingRights if it
// would wait without end.
func (o *runOptions) acquire(ctx context.Context, name string, start time.Time) (*redlock.Client, *redlock.Lease, error) {
	client, err := o.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	waiting := o.announce(client, name)
	defer waiting.end()
	if o.wait != 0 {
		watched, end := o.untilHopeless(ctx, client)
		defer end()
		o.Notices.Show()
		lease, err := o.wait.lock(watched, o.take(client, name), start)
		if why := hopeless(watched); err != nil && why != nil {
			return client, nil, why
		}
		return client, lease, o.explained(ctx, err)
	}
	lease, err := o.take(client, name).TryLock(ctx)
	err = o.explained(ctx, err)
	if o.sitsOut && isQuarantine(err) {
		if o.sitOut(ctx, client, o.guard, o.stderr) {
			return client, nil, errDeclaredNew
		}
		lease, err = o.take(client, name).TryLock(ctx)
	}
	return client, lease, err
}

// connect connects to a quorum of the masters, and tries again for as long as we may
// wait. Masters that refuse us are not asked again.
func (o *runOptions) connect(ctx context.Context) (*redlock.Client, error) {
	if o.wait != forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(time.Duration(o.wait), o.Patience()))
		defer cancel()
	}
	for told := false; ; told = true {
		client, err := o.Dial(ctx, o.stderr, append(o.options(), redlock.WithObserver(o.observe), redlock.WithDurableNodes(o.durable...))...)
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

// mayEndSoon reports whether the quarantine that keeps the client from a quorum is none of a
// longer guard than ours.
func (o *runOptions) mayEndSoon(client *redlock.Client) bool {
	rest, ok := untilQuorum(client.Nodes())
	return !ok || rest <= patienceOf(o.guard)
}

// describe tells who holds the lock, if that can be found out.
func describe(client *redlock.Client, name string, busy error) error {
	h, err := client.Inspect(context.Background(), name)
	if err != nil || !h.Held {
		return busy
	}
	until := ""
	if refused := new(redlock.Error); errors.As(busy, &refused) && refused.Remaining > 0 {
		until = "; until " + time.Now().Add(refused.Remaining).Format(time.TimeOnly) + " at least"
	}
	who := holder(h)
	if h.Waiting > 0 {
		who += fmt.Sprintf("; %d waiting", h.Waiting)
	}
	return fmt.Errorf("lock %q is taken: %s", name, who+until)
}
