package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
)

// unlockOptions are the flags of redlock unlock.
type unlockOptions struct {
	masters
	force, yes, ask bool
	reason          string
}

func newUnlockCommand() *cobra.Command {
	o := &unlockOptions{}
	cmd := &cobra.Command{
		Use:   "unlock --force|--ask NAME",
		Short: "Take a lock away from its holder, or ask for its release",
		Long: `Unlock --ask asks whoever holds the lock NAME to release it: all of them where
several do. Nothing is taken away. A holder learns of it if it listens: "redlock
run --on-request", or Lease.Requested of the library. It need not comply.

Unlock --force deletes the lock NAME from every master, whoever holds it. It
asks before that, unless --yes says that you are sure.

The holder finds out at its next renewal, up to a third of its TTL later. Until
then two may work under the lock: make sure that the holder has ended. The lock
of a process that crashed ends by itself, after its TTL.

The exit code is 0 when the lock is free now, or its holder was asked, and
otherwise
    1  you did not want to, nobody is there to be asked, or what is deleted
       cannot be written
   64  the command line makes no sense
   69  no quorum: too few masters answered
   78  the masters refuse us: wrong password, no permission, or one server is
       listed twice`,
		Args: cli.OneArgument("the name of the lock"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.force && o.ask:
				return cli.Usage("unlock: --force and --ask exclude each other")
			case o.ask && o.yes:
				return cli.Usage("unlock: --yes is for --force: --ask takes nothing away")
			case o.ask:
				return o.request(cmd, args[0])
			case cmd.Flags().Changed("reason"):
				return cli.Usage("unlock: --reason is for --ask")
			case !o.force:
				return cli.Usage("unlock: only the holder of a lock unlocks it; --ask asks the holder, --force takes it away")
			}
			return o.run(cmd, args[0])
		},
	}
	o.Register(cmd.Flags(), defaults.NodeTimeout)
	cmd.Flags().BoolVar(&o.force, "force", false, "take it away")
	cmd.Flags().BoolVar(&o.ask, "ask", false, "ask the holder to release it")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for the holder: at most 1024 bytes")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cli.FromCommandLine(cmd.Flags(), "force")
	cli.FromCommandLine(cmd.Flags(), "ask")
	cli.FromCommandLine(cmd.Flags(), "reason")
	cli.FromCommandLine(cmd.Flags(), "yes")
	cmd.ValidArgsFunction = completeLock(&o.masters)
	return cmd
}

func (o *unlockOptions) run(cmd *cobra.Command, name string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Patience())
	defer cancel()
	at, err := o.settled(ctx, name)
	if err != nil {
		return err
	}
	client, err := at.client(ctx, name, io.Discard)
	if err != nil {
		return err
	}
	defer client.Close()
	h, err := client.Inspect(ctx, name)
	if err != nil {
		return cli.Failed(err)
	}
	if err := showText(cmd.OutOrStdout(), name, h, at.around(ctx, "")); err != nil {
		return err
	}
	if !o.yes {
		if err := confirm(cmd); err != nil {
			return err
		}
	}
	if _, err := client.ForceUnlock(cmd.Context(), name); err != nil {
		return cli.Failed(err)
	}
	did := "deleted"
	if !h.Held && h.Permits == 0 {
		did = "it was free; what a minority of the masters may have ends with its TTL"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", cli.Printable(name), did)
	return err
}

// request asks the holder to release the lock.
func (o *unlockOptions) request(cmd *cobra.Command, name string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Patience())
	defer cancel()
	at, err := o.settled(ctx, name)
	if err != nil {
		return err
	}
	client, err := at.client(ctx, name, io.Discard)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.RequestRelease(ctx, name, o.reason); err != nil {
		return cli.Failed(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: its holder was asked to release it\n", cli.Printable(name))
	return err
}

// confirm asks whether to go on, on a terminal.
func confirm(cmd *cobra.Command) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return cli.Usage("unlock --force: needs --yes where it cannot ask")
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Delete it from every master? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return cli.Fail(cli.ExitFailure, fmt.Errorf("nothing was changed"))
	}
	return nil
}
