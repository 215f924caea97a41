package redlock_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/defaults"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadme_lists_every_option(t *testing.T) {
	readme := content(t, "../README.md")
	options := regexp.MustCompile(`(?m)^func (\w+)\(.*\) (Option|LockOption) `).FindAllStringSubmatch(content(t, "options.go"), -1)
	if len(options) < 10 {
		t.Fatalf("found only %d options in options.go", len(options))
	}
	for _, option := range options {
		if name := option[1]; !strings.Contains(readme, "| `"+name+"(") {
			t.Errorf("README.md has no row for %s", name)
		}
	}
}

func TestReadme_tells_the_defaults(t *testing.T) {
	readme := content(t, "../README.md")
	for option, unset := range map[string]any{
		"WithTTL": defaults.TTL, "WithNodeTimeout": defaults.NodeTimeout,
		"WithRetryInterval": defaults.RetryInterval, "WithClockGuard": defaults.ClockGuard,
	} {
		row := regexp.MustCompile("(?m)^\\| `" + option + "\\(.*$").FindString(readme)
		if !strings.Contains(row, fmt.Sprintf("| %v |", unset)) {
			t.Errorf("%s: the default is %v, README.md says:\n%s", option, unset, row)
		}
	}
}
