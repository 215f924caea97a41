package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// initOptions are the flags of redlock init.
type initOptions struct {
	masters
	regroup bool
	guard   time.Duration
}

func newInitCommand() *cobra.Command {
	o := &initOptions{}
	cmd := &cobra.Command{
		Use:   "init --nodes MASTERS",
		Short: "Declare masters new, so that their first lock need not wait",
		Long: `Init marks masters that never held a lock. Run it once, before their first
client, or after its first attempt. Without it the first lock takes a restart
guard (the longest TTL of the clients), once, because a master without a mark
may have lost its memory.

It marks all masters or none: it refuses if one cannot be reached, is a replica,
is listed twice, has keys that may be locks, or was started anew since it was
used. Beside masters that are in use, one without a mark has lost its memory,
and init refuses, too. Where clients have used the masters already there is
nothing to do: init refuses while a master must not vote for clients with the
restart guard --guard, says for how long, and later succeeds.

With --regroup it makes masters that are in use, with or without new ones, one
group: from three to five, say. All clients of the old group are shut out at
once and lose their locks in time. The clients of the new one get locks when the
longest restart guard has passed. A majority of the old group must be listed.
All masters take over what is kept for longer than a lock: fencing counters, the
sizes of semaphores, and arrivals at latches. If it fails, run it again.

The exit code is 0 when all masters are marked, now or before, and otherwise
    1  it refused, and says what stands in the way; or the answer cannot be
       written
   64  the command line makes no sense
   78  the masters refuse us: wrong password, no permission, another group of
       masters, or one server is listed twice`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.Register(cmd.Flags(), defaults.NodeTimeout)
	cmd.Flags().BoolVar(&o.regroup, "regroup", false, "make masters that are in use a group")
	cmd.Flags().DurationVar(&o.guard, "guard", defaults.TTL, "the longest TTL of any client, if the masters do not know of a longer one")
	cli.FromCommandLine(cmd.Flags(), "regroup")
	return cmd
}

// anyRefusesUs reports whether a master does: init needs all of them.
func anyRefusesUs(err error) bool {
	return slices.ContainsFunc(cli.Parts(err), cli.RefusesUs)
}

func (o *initOptions) run(cmd *cobra.Command) error {
	addrs, err := o.Addresses()
	if err != nil {
		return err
	}
	login, err := o.Login(addrs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Patience())
	defer cancel()
	if o.guard <= o.NodeTimeout {
		return cli.Usage("--guard %v: must be more than --node-timeout, %v", o.guard, o.NodeTimeout)
	}
	opts := append(append(o.Options(), login...), redlock.WithTTL(o.guard))
	mark := redlock.Init
	if o.regroup {
		mark = redlock.Regroup
	}
	done, err := mark(ctx, addrs, opts...)
	if err != nil {
		return refused(err)
	}
	return showMarked(cmd.OutOrStdout(), done)
}

// refused gives its exit code to an error of what marks all masters.
func refused(err error) error {
	switch text := err.Error(); {
	case cli.Misconfigured(err), anyRefusesUs(err):
		return cli.Fail(cli.ExitConfig, err)
	case errors.As(err, new(*wire.Error)),
		strings.HasPrefix(text, "redlock: regroup: "), strings.HasPrefix(text, "redlock: spread: "): // the masters were looked at
		return cli.Fail(cli.ExitFailure, err)
	}
	return cli.Refusal(err, map[string]string{"WithTTL": "guard"})
}

// showMarked prints a line for each master.
func showMarked(w io.Writer, done []string) error {
	for _, line := range done {
		if _, err := fmt.Fprintln(w, cli.Plain(line)); err != nil {
			return fmt.Errorf("the masters are marked, but that cannot be written: %w", err)
		}
	}
	return nil
}
