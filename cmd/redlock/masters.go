package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/node"
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
	flags.StringArrayVar(&m.nodes, "nodes", nil, "the `masters`, separated by commas: host:port,\nredis://user:password@host:port/db, rediss://...,\nunix:///path (default $"+nodesVariable+")")
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

// dial connects to a quorum of the masters. Warnings go to stderr.
func (m *masters) dial(ctx context.Context, stderr io.Writer, opts ...redlock.Option) (*redlock.Client, error) {
	addrs, err := m.addresses()
	if err != nil {
		return nil, err
	}
	n := &notices{w: stderr}
	client, err := redlock.Dial(ctx, addrs, append(opts, redlock.WithLogger(slog.New(n)))...)
	if err == nil {
		n.connected()
	}
	return client, err
}

func (m *masters) options() []redlock.Option {
	return []redlock.Option{redlock.WithNodeTimeout(m.nodeTimeout), redlock.WithKeyPrefix(m.prefix)}
}

// rehearse refuses what the library would refuse, before any node is asked.
func rehearse(name string, lock redlock.LockOption, opts ...redlock.Option) error {
	client, err := redlock.New([]node.Node{nobody{}}, opts...)
	if err != nil {
		return &exit{exitUsage, err}
	}
	defer client.Close()
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err = client.Mutex(name, lock).TryLock(ended); !errors.Is(err, context.Canceled) {
		return &exit{exitUsage, err}
	}
	return nil
}

// nobody is a node that is never asked.
type nobody struct{}

func (nobody) Addr() string                       { return "nobody" }
func (nobody) Do(*node.Command, func(node.Reply)) {}
func (nobody) Subscribe(string, func()) func()    { return func() {} }
func (nobody) Close() error                       { return nil }
