package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/redlock"
)

// apply spreads the names.
func (o *groupsOptions) apply(cmd *cobra.Command, groups map[string][]string) error {
	login, err := o.Login(addressesOf(groups))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	told := &countdown{w: cmd.ErrOrStderr()}
	opts := append(append(o.Asking(), login...), redlock.WithTTL(o.guard), redlock.WithLogger(slog.New(told)))
	done, err := redlock.Spread(ctx, groups, o.over, opts...)
	told.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.Interrupted("if names are moving, nobody gets them until it is run again with the same groups")
	case err != nil:
		return refused(err)
	}
	return showMarked(cmd.OutOrStdout(), done)
}

// countdown says for how much longer no group has the names that move. It is what Spread logs to.
type countdown struct {
	w     io.Writer
	stop  context.CancelFunc // nil: it says nothing now
	tells sync.WaitGroup
}

// end leaves nothing on a terminal.
func (c *countdown) end() {
	if c.stop != nil {
		c.stop()
		c.tells.Wait()
	}
}

func (c *countdown) tell(rest time.Duration) {
	c.end()
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.tells.Go(func() { c.count(ctx, time.Now().Add(rest)) })
}

// count writes one line anew every second on a terminal, and a line every ten seconds or more elsewhere.
func (c *countdown) count(ctx context.Context, until time.Time) {
	for {
		left := max(0, time.Until(until))
		text, pause := "names are moving: nobody gets them for another "+whole(left).String(), time.Second
		if cli.IsTerminal(c.w) {
			fmt.Fprint(c.w, cli.EraseLine+cli.Cut(text, cli.Width(c.w)-1))
		} else {
			cli.Complain(c.w, fmt.Errorf("%s", text))
			pause = max(10*time.Second, left/10)
		}
		if !passes(ctx, pause) {
			break
		}
	}
	if cli.IsTerminal(c.w) {
		fmt.Fprint(c.w, cli.EraseLine)
	}
}

// whole rounds up to seconds.
func whole(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func (c *countdown) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (c *countdown) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == operate.NamesMove && a.Value.Kind() == slog.KindDuration {
			c.tell(a.Value.Duration())
		}
		return true
	})
	return nil
}

// Spread uses neither.
func (c *countdown) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c *countdown) WithGroup(string) slog.Handler { return c }
