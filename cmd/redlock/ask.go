package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// fleet are the masters as an operator sees them: each is asked separately, and
// nothing is written to any.
type fleet []*node.Master

// open connects to every master, in the background. The guards are off: these
// questions change nothing, so a master need not be fit to vote.
func (m *masters) open() (fleet, error) {
	addrs, err := m.Addresses()
	if err != nil {
		return nil, err
	}
	return m.openAt(addrs)
}

// openAt is open for these masters.
func (m *masters) openAt(addrs []string) (fleet, error) {
	ask, err := m.Credentials()
	if err != nil {
		return nil, err
	}
	tls, err := m.TLSConfig(addrs)
	if err != nil {
		return nil, err
	}
	config := node.Config{KeyPrefix: m.Prefix, TLS: tls, Credentials: ask, Logger: slog.New(slog.DiscardHandler), MaxSilence: time.Minute, MaxAge: time.Minute}
	var all fleet
	for _, addr := range addrs {
		master, err := node.Open(addr, config)
		if err != nil {
			all.Close()
			return nil, cli.Fail(cli.ExitUsage, err)
		}
		all = append(all, master)
	}
	return all, nil
}

// group is the group of masters that a client with these flags means.
func (m *masters) group(f fleet) guard.GroupID {
	names := make([]string, len(f))
	for i, master := range f {
		names[i] = master.Addr()
	}
	return guard.GroupOf(m.Name(), names...)
}

func (f fleet) Close() error {
	var errs []error
	for _, m := range f {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

var _ io.Closer = fleet{}

// each runs ask for every master at the same time, once it is connected or cannot be;
// then err says why.
func (f fleet) each(ctx context.Context, ask func(i int, m *node.Master, err error)) {
	var all sync.WaitGroup
	for i, m := range f {
		all.Go(func() { ask(i, m, connected(ctx, m)) })
	}
	all.Wait()
}

func connected(ctx context.Context, m *node.Master) error {
	came := make(chan error, 1)
	m.Connected(func(err error) { came <- err })
	select {
	case err := <-came:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask asks one master and waits for the answer.
func ask(ctx context.Context, m *node.Master, name string, args ...string) (any, error) {
	came := make(chan wire.Reply, 1)
	m.Do(&wire.Command{Op: wire.OpRead, Name: name, Args: args}, func(r wire.Reply) { came <- r })
	select {
	case r := <-came:
		if r.Err != nil {
			return nil, r.Err.Err
		}
		return r.Value, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
