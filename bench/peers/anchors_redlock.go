package main

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// redlockService is independent Redis masters.
type redlockService []*redistest.Server

var durably = []redistest.Option{redistest.AOF(), redistest.Config("appendfsync", "always")}

func startRedlock(n int, opts ...redistest.Option) (service, error) {
	servers, err := redistest.RunN(n, opts...)
	return redlockService(servers), err
}

func (s redlockService) dialer() (worker, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := redlock.Dial(ctx, redistest.URLs(s), redlock.WithRestartGuard(0), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return redlockWorker{c}, nil
}

func (s redlockService) killLeader() error {
	s[0].Kill()
	return nil
}

func (s redlockService) close() {
	for _, server := range s {
		server.Close()
	}
}

type redlockWorker struct{ c *redlock.Client }

var text = strings.Repeat("x", payload)

func (w redlockWorker) turn(ctx context.Context, key string) error {
	lease, err := w.c.Mutex(key, redlock.Metadata(text)).TryLock(ctx)
	if err == nil {
		lease.Release()
	}
	return err
}

func (w redlockWorker) meet(ctx context.Context, name string, me, n int) error {
	for _, latch := range []*redlock.Latch{w.c.Latch(name+"-enter", n), w.c.Latch(name+"-leave", n)} {
		if err := latch.Arrive(ctx, strconv.Itoa(me)); err != nil {
			return err
		}
		if err := latch.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w redlockWorker) close() { w.c.Close() }
