//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/cmd/redlock/internal/procgroup"
)

// unixCommands are the commands that need Unix: process groups and signals.
func unixCommands() []*cobra.Command {
	return append(procgroup.Commands(), newRunCommand(), newElectCommand())
}
