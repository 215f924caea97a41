package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestVersion_names_version_commit_and_go(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "version")
	c.Begin().WantExit(0)
	c.WantStdout("redlock "+cli.Version, runtime.Version())
	c = clitest.New(t, "version", "--json")
	c.Begin().WantExit(0)
	var got cli.Build
	if err := json.Unmarshal(c.Out.Bytes(), &got); err != nil || got.Version != cli.Version || got.Commit == "" {
		t.Errorf("%+v, error %v", got, err)
	}
}

func TestThe_changelog_has_this_version(t *testing.T) {
	b, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`).FindSubmatch(b)
	if newest == nil || string(newest[1]) != cli.Version {
		t.Errorf("the newest version in CHANGELOG.md is %q, redlock version says %s", newest, cli.Version)
	}
}

// A published module finds the library by the version in its go.mod: replace is for this tree alone.
func TestEvery_module_in_contrib_requires_this_version(t *testing.T) {
	mods, err := filepath.Glob("../../contrib/*/go.mod")
	if err != nil || len(mods) == 0 {
		t.Fatal(mods, err)
	}
	for _, mod := range mods {
		if want := "\t" + module + " v" + cli.Version + "\n"; !strings.Contains(clitest.Read(t, mod), want) {
			t.Errorf("%s does not require%s", mod, strings.TrimSuffix(want, "\n"))
		}
	}
}

// Who types the name of the command alone sees what there is, on one screen, and
// where the rest stands.
func TestThe_first_help_fits_a_screen(t *testing.T) {
	t.Parallel()
	c := clitest.New(t)
	c.Begin().WantExit(0)
	c.WantStdout("redlab demo", "redlock help configuration", "status")
	if n := strings.Count(c.Out.String(), "\n"); n > 40 {
		t.Errorf("%d lines", n)
	}
	c = clitest.New(t, "help", "configuration")
	c.Begin().WantExit(0)
	c.WantStdout("REDLOCK_NODE_TIMEOUT", "config.yaml")
}

// Help is read in terminals of 80 columns.
func TestHelp_fits_eighty_columns(t *testing.T) {
	root := newRootCommand()
	for _, cmd := range append(root.Commands(), root) {
		var out strings.Builder
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
				t.Errorf("redlock %s --help: %d columns: %s", cmd.Name(), n, line)
			}
		}
	}
}
