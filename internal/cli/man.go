package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func NewManCommand(program string) *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages to a folder",
		Long: `Man writes a manual page for each command to FOLDER, which is made if need be.

  ` + program + ` man ~/.local/share/man/man1`,
		Args: OneArgument("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return Usage("%w", err)
			}
			root := cmd.Root()
			if root.PersistentFlags().Lookup(configFlag) != nil {
				root.Long += "\n\n" + AboutConfiguration // which is a page of its own in help
			}
			keepLists(root)
			root.DisableAutoGenTag = true // the same tree gives the same pages
			header := &doc.GenManHeader{Section: "1", Source: program + " " + Version, Manual: "quorumlock"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return nil
		},
	}
}

// keepLists has the lists and examples within the descriptions of all commands keep
// their lines and their indent in a manual page, which is made of Markdown: there they
// are blocks of their own.
func keepLists(cmd *cobra.Command) {
	var lines []string
	within := false
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != within && line != "" {
			lines, within = append(lines, ""), indented
		}
		if indented {
			line = "    " + line
		}
		lines = append(lines, line)
	}
	cmd.Long = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		keepLists(sub)
	}
}
