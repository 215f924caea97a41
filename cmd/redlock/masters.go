package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/redlock"
)

// masters are the masters that an operator asks, each by itself or as a quorum.
type masters struct {
	cli.Masters
	believed bool // an operator who declared them new while a client let too few of them vote
}

// unguarded are the options of a client that takes no lock: without a restart guard it marks no
// master.
func (m *masters) unguarded() []redlock.Option {
	return append(m.Asking(), redlock.WithRestartGuard(0))
}

// client dials a client that takes no lock, to ask about the lock of that name. It refuses a name that
// no lock can have before it asks any master. Its errors have exit codes: see cli.Failed.
func (m *masters) client(ctx context.Context, name string, stderr io.Writer) (*redlock.Client, error) {
	opts := m.unguarded()
	if err := rehearse(name, redlock.NoRenew(), opts...); err != nil {
		return nil, err
	}
	client, err := m.Dial(ctx, stderr, opts...)
	if err != nil {
		return nil, cli.Failed(err)
	}
	return client, nil
}

// guarded are the masters as a client with a restart guard sees them: flags of commands that say
// whether such a client could lock, and take no lock.
type guarded struct {
	masters
	guard   time.Duration
	durable []string // masters that lose nothing when they restart
	stderr  io.Writer
}

func (g *guarded) register(flags *pflag.FlagSet) {
	g.Register(flags, defaults.NodeTimeout)
	flags.DurationVar(&g.guard, "restart-guard", defaults.TTL, "the longest TTL that anybody uses there")
	registerDurable(flags, &g.durable)
}

// connect makes the client.
func (g *guarded) connect(ctx context.Context) (*redlock.Client, error) {
	client, err := g.Dial(ctx, g.stderr, append(g.Options(), redlock.WithTTL(min(g.guard, defaults.TTL)), redlock.WithRestartGuard(g.guard), redlock.WithDurableNodes(g.durable...))...)
	if err != nil && cli.CodeOf(cli.Failed(err)) == cli.ExitUsage {
		return nil, cli.Refusal(err, map[string]string{"WithTTL": "restart-guard"}) // which it follows
	}
	return client, err
}
