package soak

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// dials connects, locks and closes again and again.
func (t *trial) dials(ctx context.Context, n int) error {
	once := func() error {
		client, err := redlock.Dial(ctx, t.addrs, redlock.WithNodeTimeout(keepTimeout), redlock.WithRestartGuard(0),
			redlock.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Mutex("dialled").Lock(ctx) // Close gives it up
		return err
	}
	if err := once(); err != nil {
		return err
	}
	first := t.sample("after one")
	begin := time.Now()
	for i := range n {
		if err := once(); err != nil {
			return err
		}
		t.progress(float64(i)/float64(n), "dialling")
	}
	t.figure("Dial, Lock, Close", "%v each", (time.Since(begin) / time.Duration(n)).Round(10*time.Microsecond))
	wait(ctx, 500*time.Millisecond) // for the servers to notice
	last := t.sample("after all")
	t.flat(first, last)
	t.noKeys(last)
	return nil
}
