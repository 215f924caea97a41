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
	root.InitDefaultCompletionCmd("completion")
	refuseUnknownShells(root)
	refuseFlags(root)
	return root
}

// refuseUnknownShells has redlock completion fail for a shell that it has no script
// for. Cobra's own shows its help, as if that was what was asked for.
func refuseUnknownShells(root *cobra.Command) {
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err)
	}
	for _, shell := range completion.Commands() { // one line has 81 columns
		shell.Long = strings.Replace(shell.Long, "you can install it via", "install it with", 1)
	}
	completion.Args = nil
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var shells []string
		for _, shell := range completion.Commands() {
			shells = append(shells, shell.Name())
		}
		return usage("completion %s: there is no script for this shell; there are some for %s", printable(args[0]), enumerated(shells))
	}
}

// jsonFlag adds the one flag that means the same everywhere: JSON, and nothing
// else, on the standard output.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of text")
}
