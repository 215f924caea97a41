package redlock_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a program takes on with the library is little, and has no test server in
// it.
func TestThe_library_imports_five_modules(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".", "../node", "../quorum", "../drift").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	want := []string{
		"github.com/benbjohnson/clock",
		"github.com/gomodule/redigo",
		"github.com/hashicorp/errwrap",
		"github.com/hashicorp/go-multierror",
		"github.com/quorumlock/quorumlock",
	}
	if !slices.Equal(modules, want) {
		t.Errorf("modules %q, want %q", modules, want)
	}
}
