//go:build unix

package main

import "github.com/spf13/cobra"

// unixCommands are the commands that need Unix: process groups and signals.
func unixCommands() []*cobra.Command {
	return append(platformCommands(), newRunCommand(), newElectCommand())
}
