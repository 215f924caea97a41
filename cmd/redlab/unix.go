//go:build unix

package main

import "github.com/spf13/cobra"

// unixCommands are the commands that need Unix: they start servers of their own.
func unixCommands() []*cobra.Command { return []*cobra.Command{newBenchCommand()} }
