// Redlab shows what a quorum lock survives, and its cost. It is for people who
// choose or develop the lock, and not for machines that use it.
//
//	redlab demo       a lock on five masters, three of which die
//	redlab simulate   the lock's production code, through every failure
//	redlab bench      what a quorum costs on this machine
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
)

func main() { os.Exit(cli.Execute(newRootCommand(), os.Args[1:])) }

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("redlab", "What a quorum lock survives, and what it costs",
		`Redlab shows what a lock of a quorum of Redis masters survives, and what it
costs. Nothing in it is needed to use the lock: see redlock for that.`)
	root.AddCommand(newDemoCommand(), newSimulateCommand())
	root.AddCommand(unixCommands()...)
	return cli.Finish(root)
}
