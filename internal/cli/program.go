package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// program is the name of the command, which begins its messages.
var program = "redlock"

// NewRoot returns a command without subcommands, with what redlock and redlab have in
// common. Call Finish when the subcommands are added.
func NewRoot(name, short, long string) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         short,
		Long:          long,
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return root
}

// Finish adds the commands that every program has, and returns root.
func Finish(root *cobra.Command) *cobra.Command {
	root.AddCommand(NewVersionCommand())
	root.InitDefaultCompletionCmd("completion")
	refuseUnknownShells(root)
	refuseFlags(root)
	return root
}

// Execute runs the command line and returns the exit code.
func Execute(root *cobra.Command, args []string) int {
	program = root.Name()
	started := false
	prepare := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		started = true
		if prepare == nil {
			return nil
		}
		return prepare(cmd, args)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if !started { // cobra refused the command line
		refusal := strings.Replace(err.Error(), "\n\nDid you mean this?\n\t", "; did you mean: ", 1)
		err = Usage("%s (see %s --help)", strings.Join(strings.Fields(refusal), " "), cmd.CommandPath())
	}
	Complain(root.ErrOrStderr(), err)
	return CodeOf(err)
}

// refuseUnknownShells has the completion command fail for a shell that it has no script
// for. Cobra's own shows its help instead.
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
		return Usage("completion %s: unknown shell; there are scripts for %s", Printable(args[0]), Enumerated(shells))
	}
}

// JSONFlag adds the one flag that means the same everywhere: JSON, and nothing
// else, on the standard output.
func JSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of text")
}
