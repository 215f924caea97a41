package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const Tree = "../.."

// Pages are README.md and everything in docs/.
func Pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(Tree + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range append(paths, Tree+"/README.md") {
		all[path] = Read(t, path)
	}
	return all
}

func Read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// CommandLines returns the commands of a program in the blocks of a page, without what
// explains them.
func CommandLines(text, program string) (lines []string) {
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			line = strings.TrimPrefix(line, "go run ./cmd/")
			if !strings.HasPrefix(line, program+" ") || strings.HasPrefix(line, "redlock on ") {
				continue // no command, or a line of a table
			}
			line, _, _ = strings.Cut(line, "  ") // two spaces: an explanation
			line, _, _ = strings.Cut(line, " #")
			line, _, _ = strings.Cut(line, " | ")
			lines = append(lines, line)
		}
	}
	return lines
}

// Between is what stands in a text after one mark and before the next.
func Between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, text, found := strings.Cut(text, before)
	text, _, ended := strings.Cut(text, after)
	if !found || !ended {
		t.Fatalf("there is nothing between %q and %q", before, after)
	}
	return text
}

// Accepts returns the error of a command line that its program refuses, and runs nothing.
func Accepts(root *cobra.Command, args []string) error {
	for _, cmd := range root.Commands() {
		for _, c := range append(cmd.Commands(), cmd) {
			c.RunE = func(*cobra.Command, []string) error { return nil }
		}
	}
	root.SetArgs(args)
	_, err := root.ExecuteC()
	return err
}

// WantAccepted fails the test for each command of a program in the pages that does not
// exist, or does not take the flags and arguments that the page shows. There are at
// least so many.
func WantAccepted(t *testing.T, newRoot func() *cobra.Command, atLeast int) {
	t.Helper()
	program, seen := newRoot().Name(), 0
	for path, text := range Pages(t) {
		for _, line := range CommandLines(text, program) {
			seen++
			if err := Accepts(newRoot(), strings.Fields(line)[1:]); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
	}
	if seen < atLeast {
		t.Errorf("only %d commands of %s found, want %d", seen, program, atLeast)
	}
}
