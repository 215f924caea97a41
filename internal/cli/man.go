package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/quorumlock/quorumlock/internal/wrap"
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
// are blocks of their own. man breaks none of their lines.
func keepLists(cmd *cobra.Command) {
	var lines, block []string
	end := func() {
		for _, line := range refit(block) {
			lines = append(lines, "    "+line)
		}
		block = nil
	}
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != (block != nil) && line != "" {
			end()
			lines = append(lines, "")
		}
		if indented {
			block = append(block, line)
			continue
		}
		end()
		lines = append(lines, line)
	}
	end()
	cmd.Long = strings.Join(lines, "\n")
	cmd.Example = strings.TrimPrefix(strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n"), "\n")
	for _, sub := range cmd.Commands() {
		keepLists(sub)
	}
}

// manColumns is what a terminal of 80 columns has left beside the margins of man.
const manColumns = 72

// item is the first line of an item: its subject, at least two spaces, a text.
var item = regexp.MustCompile(`^( *\S+  +)(\S.*)$`)

// refit breaks the items of a list anew, which were broken for 80 columns.
func refit(list []string) (lines []string) {
	for len(list) > 0 {
		first := list[0]
		list = list[1:]
		m := item.FindStringSubmatch(first)
		if m == nil {
			lines = append(lines, first)
			continue
		}
		label, text := m[1], m[2]
		margin := strings.Repeat(" ", len(label))
		for len(list) > 0 && strings.HasPrefix(list[0], margin) {
			text += list[0][len(margin)-1:]
			list = list[1:]
		}
		lines = append(lines, strings.Split(label+wrap.Text(text, len(label), manColumns), "\n")...)
	}
	return lines
}
