// Redlock takes quorum locks from the command line, and shows what they do.
//
//	redlock demo                     a lock on five masters, three of which die
//	redlock init                     declare masters new, before their first lock
//	redlock run NAME -- CMD ARGS...  run a command while holding a lock
//	redlock elect NAME -- CMD ARGS   run a command while leading
//	redlock observe NAME             who leads, and every new leader
//	redlock status [NAME]            who holds a lock, or which locks are held
//	redlock unlock --force NAME      take a lock away from its holder
//	redlock doctor                   what is wrong with the masters
//	redlock simulate                 the lock's production code, through every failure
//	redlock bench                    what a quorum costs on this machine
package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs the command line and returns the exit code.
func execute(args []string) int {
	root := newRootCommand()
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		started = true
		if !cmd.Hidden {
			warnOfMisspelt(cmd.ErrOrStderr(), root)
		}
		return configure(cmd)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if !started { // cobra refused the command line
		refusal := strings.Replace(err.Error(), "\n\nDid you mean this?\n\t", "; did you mean: ", 1)
		err = usage("%s (see %s --help)", strings.Join(strings.Fields(refusal), " "), cmd.CommandPath())
	}
	complain(root.ErrOrStderr(), err)
	return codeOf(err)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "redlock",
		Short: "Locks held by a quorum of independent Redis masters",
		Long: `Redlock takes locks that are held by a quorum of independent Redis masters: a
lock survives the loss of any minority of them, and its loss is announced before
anybody else can have it.

New here? "redlock demo" needs no Redis. Every flag can also be set in the
environment and in a file: see "redlock help configuration".`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.PersistentFlags().String(configFlag, "", "the configuration `file`")
	root.AddCommand(newDemoCommand(), newInitCommand(), newStatusCommand(), newUnlockCommand(), newObserveCommand(),
		newDoctorCommand(), newSimulateCommand(), newVersionCommand(), newManCommand())
	root.AddCommand(unixCommands()...)
	root.AddCommand(&cobra.Command{Use: "configuration", Short: "Flags in the environment and in a file", Long: aboutConfiguration})
	return root
}

// jsonFlag adds the one flag that means the same everywhere: JSON, and nothing
// else, on the standard output.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of text")
}
