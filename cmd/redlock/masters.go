package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/redlock"
)

// masters are the flags that say which masters to ask, and how.
type masters struct {
	nodes       []string
	nodeTimeout time.Duration
	prefix      string
}

// nodesVariable is where the masters are looked for when --nodes is absent.
const nodesVariable = "REDLOCK_NODES"

func (m *masters) register(flags *pflag.FlagSet, nodeTimeout time.Duration) {
	flags.StringArrayVar(&m.nodes, "nodes", nil, "the `masters`, separated by commas: host:port, redis://user:password@host:port/db,\nrediss://..., unix:///path (default $"+nodesVariable+")")
	flags.DurationVar(&m.nodeTimeout, "node-timeout", nodeTimeout, "how long one master may take to answer")
	flags.StringVar(&m.prefix, "prefix", "", "what every key begins with")
}

// addresses returns the masters, or an error that says how to name them.
func (m *masters) addresses() ([]string, error) {
	given := strings.Join(m.nodes, ",")
	if given == "" {
		given = os.Getenv(nodesVariable)
	}
	var addrs []string
	for _, addr := range strings.Split(given, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, usage("no masters given: use --nodes a:6379,b:6379,c:6379 or set %s to the same; "+
			"five that are independent of each other are advised (redlock demo needs none)", nodesVariable)
	}
	return addrs, nil
}

// dial connects to a quorum of the masters. Warnings go to errors.
func (m *masters) dial(ctx context.Context, stderr io.Writer, opts ...redlock.Option) (*redlock.Client, error) {
	addrs, err := m.addresses()
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
	opts = append([]redlock.Option{
		redlock.WithNodeTimeout(m.nodeTimeout),
		redlock.WithKeyPrefix(m.prefix),
		redlock.WithLogger(logger),
	}, opts...)
	return redlock.Dial(ctx, addrs, opts...)
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}
