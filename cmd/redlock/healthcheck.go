package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// healthOptions are the flags of redlock healthcheck.
type healthOptions struct {
	guarded
	timeout time.Duration
	try     string // what the name of the lock begins with; empty: any name will do
}

func newHealthcheckCommand() *cobra.Command {
	o := &healthOptions{}
	cmd := &cobra.Command{
		Use:   "healthcheck [flags]",
		Short: "Find out whether a lock could be taken now",
		Long: `Healthcheck connects as a client does, looks whether a quorum of the masters
votes, in each of several groups, and takes a lock there for a moment, which has
a name of its own: masters that are full vote, but store nothing. It is for
probes: it says nothing if all is well, and otherwise what every master lacks.
"redlock doctor" finds out more.

Masters that let our user use only some names do not tell whether they are full,
unless --try says what such a name begins with.

The exit code is
    0  a lock could be taken
   64  the command line makes no sense
   69  no quorum of the masters votes, or stores a lock
   78  the masters refuse us: wrong password, no permission, or another group`,
		Example: `  redlock healthcheck --nodes a,b,c
  redlock healthcheck --timeout 1s || alert
  redlock healthcheck --try job: || alert`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			o.stderr = cmd.ErrOrStderr()
			if o.timeout <= 0 {
				return cli.Usage("--timeout %v: must be positive", o.timeout)
			}
			return o.run(ctx)
		},
	}
	flags := cmd.Flags()
	o.register(flags)
	flags.StringVar(&o.try, "try", "", "take a lock whose name begins with this (default any name)")
	flags.DurationVar(&o.timeout, "timeout", cli.ConnectPatience, "how long it may take until a quorum of the masters votes")
	return cmd
}

// healthPause is how long to wait before looking again.
const healthPause = 20 * time.Millisecond

// run waits until the client of each group is healthy, as a new one is when it has looked at its masters.
func (o *healthOptions) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	all, err := o.each()
	if err != nil {
		return err
	}
	for _, group := range all {
		one := *o
		one.masters = group
		if err := one.untilHealthy(ctx); err != nil {
			return cli.Failed(one.inGroup(err))
		}
	}
	return nil
}

func (o *healthOptions) untilHealthy(ctx context.Context) error {
	client, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	var why error
	for {
		err := client.Healthy()
		if err == nil {
			err = o.takesLock(ctx, client)
		}
		if err == nil || cli.CodeOf(cli.Failed(err)) == cli.ExitUsage {
			return err
		}
		if why == nil || ctx.Err() == nil { // one that the end of ctx cut short says less
			why = err
		}
		select {
		case <-ctx.Done():
			if lacks := new(lackingRights); errors.As(o.explained(context.WithoutCancel(ctx), why), &lacks) {
				return lacks.failure()
			}
			return why
		case <-time.After(healthPause):
		}
	}
}

// mostNames is how many names are tried in a group that may have only some, or none.
const mostNames = 1000

// takesLock takes a lock that nobody else takes. It is no fault if the group has none of the names, nor,
// without --try, if our user must not use such a name.
func (o *healthOptions) takesLock(ctx context.Context, client *redlock.Client) error {
	for range mostNames {
		name := cmp.Or(o.try, "healthcheck:") + rand.Text()
		lease, err := client.Mutex(name, redlock.NoRenew()).TryLock(ctx)
		switch {
		case err == nil:
			return lease.Unlock(ctx)
		case o.try == "" && mayNot(err):
			return nil
		case !errors.Is(err, redlock.ErrMoved):
			return err
		}
	}
	return nil
}

// mayNot reports whether a majority of the masters refuse the name, and only that.
func mayNot(err error) bool {
	failed := new(redlock.Error)
	if !errors.As(err, &failed) {
		return false
	}
	names := 0
	for _, v := range failed.Votes {
		if said := new(wire.ServerError); errors.As(v.Err, &said) && said.Code == "NOPERM" && !said.Unwritable() {
			names++
		}
	}
	return names >= quorum.Size(len(failed.Votes))
}
