// Redlock takes quorum locks from the command line, and shows what they do.
//
//	redlock demo                     a lock on five masters, three of which die
//	redlock run NAME -- CMD ARGS...  run a command while holding a lock
//	redlock status NAME              who holds a lock
//	redlock simulate                 the lock's production code, through every failure
//	redlock bench                    what a quorum costs on this machine
//	redlock bench                    what a quorum costs on this machine
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs the command line and returns the exit code.
func execute(args []string) int {
	root := newRootCommand()
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if !started { // cobra refused the command line
		err = usage("%w (see %s --help)", err, cmd.CommandPath())
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

New here? "redlock demo" needs no Redis.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newDemoCommand(), newRunCommand(), newStatusCommand(), newBenchCommand(), newSimulateCommand())
	return root
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

// complain prints an error as one line. The library's errors name it already.
func complain(w io.Writer, err error) {
	if text := err.Error(); text != "" {
		fmt.Fprintln(w, "redlock: "+strings.TrimPrefix(text, "redlock: "))
	}
}
