package redlock_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

// stuck is a log whose disk is full, say.
type stuck struct {
	slog.Handler
	forever chan struct{}
}

func (s stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(context.Context, slog.Record) error {
	<-s.forever
	return nil
}

// Two leases are lost at once. The log line about one must not keep the owner of
// the other from being told.
func TestA_log_that_blocks_delays_nobodys_loss(t *testing.T) {
	ms := fiveMasters(t)
	log := stuck{slog.DiscardHandler, make(chan struct{})}
	c, links := ms.client(redlock.WithLogger(slog.New(log)))
	a, b := mustLock(t, c.Mutex("a")), mustLock(t, c.Mutex("b"))
	for _, l := range links {
		l.set(down)
	}

	passed := make(chan struct{})
	go func() {
		defer close(passed)
		ms.pass(second)
	}()

	mustEnd(t, a.Context())
	mustEnd(t, b.Context())
	close(log.forever)
	<-passed
}
