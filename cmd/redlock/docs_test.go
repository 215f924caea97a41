package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

const tree = "../.."

// pages are README.md and everything in docs/.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(tree + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range append(paths, tree+"/README.md") {
		all[path] = read(t, path)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// A page that nothing links to is not found; a link to nothing is worse.
func TestEveryPageIsLinkedAndEveryLinkLeadsSomewhere(t *testing.T) {
	linked := map[string]bool{filepath.Clean(tree + "/README.md"): true}
	all := pages(t)
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(path), m[1])
			linked[target] = true
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
			}
		}
	}
	err := filepath.WalkDir(tree+"/docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !linked[filepath.Clean(path)] {
			t.Errorf("nothing links to %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// commandLines are the redlock commands in the blocks of a page, without what
// explains them.
func commandLines(text string) (lines []string) {
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			line = strings.TrimPrefix(line, "go run ./cmd/")
			if !strings.HasPrefix(line, "redlock ") || strings.HasPrefix(line, "redlock on ") {
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

// Every command that the pages show is one that exists, with flags and
// arguments that it takes.
func TestEveryCommandInThePagesIsAccepted(t *testing.T) {
	seen := 0
	for path, text := range pages(t) {
		for _, line := range commandLines(text) {
			seen++
			if err := accepts(strings.Fields(line)[1:]); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d commands found", seen)
	}
}

func accepts(args []string) error {
	root := newRootCommand()
	var err error
	for _, cmd := range root.Commands() {
		for _, c := range append(cmd.Commands(), cmd) {
			c.RunE = func(*cobra.Command, []string) error { return nil }
		}
	}
	root.SetArgs(args)
	_, err = root.ExecuteC()
	return err
}

// startComposed starts redis-servers as the compose file configures them.
func startComposed(t *testing.T) []*redistest.Server {
	t.Helper()
	var compose struct {
		Services map[string]struct {
			Command string
			Ports   []string
			Volumes []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, tree+"/examples/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	if len(compose.Services) != 5 {
		t.Fatalf("%d services, want 5", len(compose.Services))
	}
	var masters []*redistest.Server
	ports := map[string]bool{}
	for name, service := range compose.Services {
		ports[strings.Join(service.Ports, " ")] = true
		if len(service.Volumes) != 1 || !strings.HasPrefix(service.Volumes[0], name+":") {
			t.Errorf("%s: volumes %q, want one of its own", name, service.Volumes)
		}
		masters = append(masters, redistest.Start(t, directives(t, service.Command)...))
	}
	if len(ports) != 5 {
		t.Errorf("the services share ports: %v", ports)
	}
	return masters
}

// directives reads the arguments of redis-server that are no matter of the place
// where it runs.
func directives(t *testing.T, command string) (opts []redistest.Option) {
	t.Helper()
	words := strings.Fields(command)
	if filepath.Base(words[0]) != "redis-server" {
		t.Fatalf("it runs %s, want redis-server", words[0])
	}
	for i := 1; i+1 < len(words); i += 2 {
		name, value := strings.TrimPrefix(words[i], "--"), words[i+1]
		if !slices.Contains([]string{"port", "bind", "dir", "supervised", "protected-mode"}, name) {
			opts = append(opts, redistest.Config(name, value))
		}
	}
	return opts
}

// A master as the systemd unit starts it has nothing that doctor warns of.
func TestTheSystemdUnitStartsASoundMaster(t *testing.T) {
	unit := read(t, tree+"/examples/systemd/redis-lock@.service")
	_, command, ok := strings.Cut(unit, "ExecStart=")
	if !ok {
		t.Fatal("no ExecStart")
	}
	command, _, _ = strings.Cut(command, "\n")
	master := redistest.Start(t, directives(t, command)...)
	onMasters(t, []*redistest.Server{master}, "init").start().wantExit(0)
	c := onMasters(t, []*redistest.Server{master}, "doctor", "--node-timeout", "10s")
	c.start().wantExit(0)
	if strings.Contains(c.stdout.String(), "forgets") || strings.Contains(c.stdout.String(), "evict") {
		t.Errorf("doctor finds something:\n%s", &c.stdout)
	}
}

// The README shows the program of examples/quickstart.
func TestTheReadmeShowsTheQuickstart(t *testing.T) {
	_, source, _ := strings.Cut(read(t, tree+"/examples/quickstart/main.go"), "\n") // the comment that names the README
	if block := "```go\n" + strings.TrimSpace(source) + "\n```"; !strings.Contains(read(t, tree+"/README.md"), block) {
		t.Fatalf("README.md does not show examples/quickstart/main.go:\n%s", block)
	}
}

var warn = regexp.MustCompile(`Warn\("(?:redlock: )?([^":,]+)`)

// An operator who meets a warning finds it in docs/operations.md.
func TestEveryWarningIsExplained(t *testing.T) {
	explained := read(t, tree+"/docs/operations.md")
	seen := 0
	for _, folder := range []string{"node", "redlock"} {
		files, err := filepath.Glob(filepath.Join(tree, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range warn.FindAllStringSubmatch(read(t, file), -1) {
				seen++
				if !strings.Contains(explained, m[1]) {
					t.Errorf("%s warns %q, which docs/operations.md does not explain", file, m[1])
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d warnings found", seen)
	}
}
