//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// newElectCommand is redlock run with a lock that one leader holds, and that
// candidates always wait for.
func newElectCommand() *cobra.Command {
	o := newRunOptions()
	o.wait, o.metadataFlag, o.free = forever, "value", "nobody leads, but we were not elected yet"
	var value, env string
	o.take = func(client *redlock.Client, name string) locker {
		return candidate{client.Election(name), client.Mutex(name, redlock.Fenced(), redlock.Metadata(value)), value}
	}
	cmd := &cobra.Command{
		Use:   "elect [flags] NAME -- COMMAND [ARGS...]",
		Short: "Run a command while leading",
		Long: `Elect waits until this process leads the election NAME, and runs COMMAND while
it does. It ends with the command, which resigns, or when the leadership is
lost, which ends the command as "redlock run" does: see there how, and what the
exit codes mean. A service manager starts it again.

REDLOCK_NAME, REDLOCK_VALUE and REDLOCK_TOKEN are in the command's environment.
The token is higher than that of every leader before: send it with each write
to a resource that refuses lower ones. "redlock observe NAME" tells who leads,
and what --value says of it.`,
		Example: `  redlock elect scheduler --value 10.0.0.7:8080 -- ./scheduler`,
		Args:    checkElectArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stderr, o.metadata, o.kind.tokenEnv = cmd.ErrOrStderr(), value, env
			if err := checkVariable(env); err != nil {
				return err
			}
			if err := o.check(cmd.Flags(), args[0]); err != nil {
				return err
			}
			return o.run(args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	o.registerLease(flags)
	flags.StringVar(&value, "value", "", "what observers are told of this leader, where it can be reached say: at most 1024 bytes")
	cli.FromCommandLine(flags, "value") // REDLOCK_VALUE means the value of the lock
	registerTokenEnv(flags, &env)
	cmd.ValidArgsFunction = completeLock(&o.masters)
	return cmd
}

func checkElectArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return errors.New("the name of the election is missing: redlock elect NAME -- COMMAND [ARGS...]")
	case dash != 1 || len(args) == 1:
		return errors.New("the command is missing, behind --: redlock elect NAME -- COMMAND [ARGS...]")
	}
	return nil
}

// candidate takes an election.
type candidate struct {
	*redlock.Election
	*redlock.Mutex // the same lock, to rehearse with
	value          string
}

func (c candidate) Lock(ctx context.Context) (*redlock.Lease, error) {
	return c.Campaign(ctx, c.value)
}
