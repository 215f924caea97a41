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
	"github.com/quorumlock/quorumlock/simulate"
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

// What docs/operations.md and docs/simulation.md show of the command works: with
// few schedules, or with -all as it stands there.
func TestTheCommandsOfTheOtherPagesWork(t *testing.T) {
	masters := startComposed(t)
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	ran, failing := 0, schedule(t)
	for _, page := range []string{"operations", "simulation"} {
		for _, line := range commandLines(read(t, tree+"/docs/"+page+".md")) {
			line = strings.ReplaceAll(line, "a:6379,b:6379,c:6379,d:6379,e:6379", strings.Join(addrs, ","))
			words := strings.Fields(line)[1:]
			switch explores := slices.Contains(words, "--explore"); {
			case explores && (!*everything || words[len(words)-1] != "extend"):
				continue // takes long, or has no end that anybody has waited for
			case slices.Contains(words, "merge"):
				continue // what several machines wrote: TestShardsMergeToTheWholeRun
			case slices.Contains(words, "--shard"):
				words = append(words, "--seeds", "4")
			case words[0] == "simulate" && !explores && !slices.Contains(words, "--schedule") && !slices.Contains(words, "--list") && !*everything:
				words = append(words, "--seeds", "1")
			}
			c := onMasters(t, masters, words...)
			if words[0] != "simulate" {
				c.Env = append(c.Env, "REDLOCK_NODE_TIMEOUT=10s")
			}
			c.write("run.json", failing)
			broke := slices.Contains(words, "--schedule") // as it did before
			if code := c.start().end(); code != 0 && !(broke && code == exitFailure) {
				t.Errorf("%s: exit code %d\n%s%s", line, code, &c.stdout, &c.stderr)
			}
			ran++
		}
	}
	if ran < 13 {
		t.Errorf("only %d commands found", ran)
	}
}

// schedule is what simulate --json writes with a schedule that failed.
func schedule(t *testing.T) string {
	t.Helper()
	c := redlockCommand(t, "simulate", "restart-amnesia", "--seeds", "20", "--json")
	c.start().wantExit(0)
	c.wantStdout("failing_schedule")
	return c.stdout.String()
}

// Each argument about Redlock names scenarios that there are.
func TestEachArgumentIsAScenarioToRun(t *testing.T) {
	debate := between(t, read(t, tree+"/docs/guarantees.md"), "## The debate", "\n## ")
	rows := 0
	for line := range strings.Lines(debate) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		rows++
		for i, name := range strings.Split(cells[3], "`") {
			if i%2 == 1 && simulate.Find(name) == nil {
				t.Errorf("there is no scenario %s", name)
			}
		}
	}
	if rows < 9 {
		t.Errorf("only %d arguments", rows)
	}
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

// inProduction calls do for every match of what the library's own files say.
func inProduction(t *testing.T, what *regexp.Regexp, do func(file, message string)) {
	t.Helper()
	for _, folder := range []string{"node", "redlock", "quorum", "drift"} {
		files, err := filepath.Glob(filepath.Join(tree, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range what.FindAllStringSubmatch(read(t, file), -1) {
				do(file, m[1])
			}
		}
	}
}

var warn = regexp.MustCompile(`Warn\("(?:redlock: )?([^":,]+)`)

// An operator who meets a warning finds it in docs/operations.md.
func TestEveryWarningIsExplained(t *testing.T) {
	explained := read(t, tree+"/docs/operations.md")
	seen := 0
	inProduction(t, warn, func(file, message string) {
		seen++
		if !strings.Contains(explained, message) {
			t.Errorf("%s warns %q, which docs/operations.md does not explain", file, message)
		}
	})
	if seen < 5 {
		t.Errorf("only %d warnings found", seen)
	}
}

var logged = regexp.MustCompile(`(?:\.(?:Warn|Info|Debug)\(|Log\(m\.ctx, level, )"([^"]*)`)

// Whoever looks for the library in a log looks for one word.
func TestEveryLogLineBeginsWithTheSameWord(t *testing.T) {
	seen := 0
	inProduction(t, logged, func(file, message string) {
		seen++
		if !strings.HasPrefix(message, "redlock: ") {
			t.Errorf("%s logs %q, want redlock: before it", file, message)
		}
	})
	if seen < 9 {
		t.Errorf("only %d log lines found", seen)
	}
}
