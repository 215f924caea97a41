// Redlock takes quorum locks from the command line.
//
//	redlock init                     declare masters new, before their first lock
//	redlock run NAME -- CMD ARGS...  run a command while holding a lock
//	redlock elect NAME -- CMD ARGS   run a command while leading
//	redlock observe NAME             who leads, and every new leader
//	redlock status [NAME]            who holds a lock, or which locks are held
//	redlock unlock --force NAME      take a lock away from its holder; --ask: ask for its release
//	redlock doctor                   find the problems of the masters
//	redlock groups plan|apply        spread names over several groups of masters
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
)

func main() { os.Exit(cli.Execute(newRootCommand(), os.Args[1:])) }

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("redlock", "Locks held by a quorum of independent Redis masters",
		`Redlock takes locks that are held by a quorum of independent Redis masters: a
lock survives the loss of any minority of them, and its loss is announced before
anybody else can have it.

New here? "redlab demo" needs no Redis. Every flag can also be set in the
environment and in a file: see "redlock help configuration".`)
	cli.AddConfiguration(root)
	root.AddCommand(newInitCommand(), newStatusCommand(), newUnlockCommand(), newObserveCommand(), newDoctorCommand(), newGroupsCommand(), newHealthcheckCommand())
	root.AddCommand(unixCommands()...)
	return cli.Finish(root)
}
