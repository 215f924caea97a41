package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Version is the version of the library and the command. It stands here only.
const Version = "0.1.0"

// Build is what redlock version prints.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // since the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func NewVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the version of Go",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), b)
			return err
		},
	}
	JSONFlag(cmd, &asJSON)
	return cmd
}

func thisBuild() Build {
	b := Build{Version: Version, Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Commit == "unknown" { // installed by go install: the module's version names the commit
		b.Commit = cmp.Or(strings.Trim(info.Main.Version, "()"), b.Commit) // "(devel)" of a build without git
	}
	return b
}

func (b Build) String() string {
	commit := b.Commit
	if len(commit) == 40 {
		commit = commit[:12]
	}
	if b.Modified {
		commit += ", modified"
	}
	return fmt.Sprintf("%s %s (%s) %s %s", program, b.Version, commit, b.Go, b.Platform)
}
