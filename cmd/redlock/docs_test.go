package main

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// A page that nothing links to is not found; a link to nothing is worse.
func TestEvery_page_is_linked_and_every_link_leads_somewhere(t *testing.T) {
	linked := map[string]bool{filepath.Clean(clitest.Tree + "/README.md"): true}
	all := clitest.Pages(t)
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
	err := filepath.WalkDir(clitest.Tree+"/docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !linked[filepath.Clean(path)] {
			t.Errorf("nothing links to %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every command that the pages show is one that exists, with flags and
// arguments that it takes.
func TestEvery_command_in_the_pages_is_accepted(t *testing.T) {
	clitest.WantAccepted(t, newRootCommand, 15)
}

var recipe = regexp.MustCompile(`(?m)(?:^|[/=\s])redlock ((?:run|elect|doctor|init) .*?)(?: >/dev/null)?$`)

// So is every line of docs/recipes.md in a crontab or a unit, with the file that it names.
func TestEvery_line_of_the_recipes_is_accepted(t *testing.T) {
	page := clitest.Read(t, clitest.Tree+"/docs/recipes.md")
	dir := t.TempDir()
	config, password := filepath.Join(dir, "redlock.yaml"), filepath.Join(dir, "password")
	file := strings.ReplaceAll(clitest.Between(t, page, "```yaml\n", "```"), "/etc/redlock/locks.password", password)
	clitest.Must(t, os.WriteFile(config, []byte(file), 0o600))
	clitest.Must(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	page = strings.ReplaceAll(page, "/etc/redis-lock/operator.password", password)
	lines := recipe.FindAllStringSubmatch(page, -1)
	for _, m := range lines {
		if err := clitest.Accepts(newRootCommand(), strings.Fields(strings.ReplaceAll(m[1], "/etc/redlock.yaml", config))); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
	if len(lines) < 5 {
		t.Errorf("only %d commands found: %q", len(lines), lines)
	}
}

// What docs/operations.md shows of the command works.
func TestThe_commands_of_operations_work(t *testing.T) {
	t.Parallel()
	masters := startComposed(t)
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	groups := startGroups(t, "a", "b")
	ran := 0
	for _, line := range clitest.CommandLines(clitest.Read(t, clitest.Tree+"/docs/operations.md"), "redlock") {
		line = strings.ReplaceAll(line, "a:6379,b:6379,c:6379,d:6379,e:6379", strings.Join(addrs, ","))
		line = strings.ReplaceAll(line, "a=a1:6379,a2:6379,a3:6379,b=b1:6379,b2:6379,b3:6379", groups.nodes())
		c := clitest.OnMasters(t, masters, strings.Fields(line)[1:]...)
		c.Env = append(c.Env, "REDLOCK_NODE_TIMEOUT=10s")
		if code := c.Begin().End(); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &c.Out, &c.Errors)
		}
		ran++
	}
	if ran < 4 {
		t.Errorf("only %d commands found", ran)
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
	if err := yaml.Unmarshal([]byte(clitest.Read(t, clitest.Tree+"/examples/compose.yaml")), &compose); err != nil {
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

// The manifest for Kubernetes has all that it names: a StatefulSet without its headless
// Service has masters without names, and an anti-affinity, a Service or a NetworkPolicy
// whose labels nobody has does nothing.
func TestThe_Kubernetes_manifest_is_whole(t *testing.T) {
	type labels = map[string]string
	type manifest struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Replicas       int
			ServiceName    string `yaml:"serviceName"`
			ClusterIP      string `yaml:"clusterIP"`
			MaxUnavailable int    `yaml:"maxUnavailable"`
			Selector       yaml.Node
			PodSelector    yaml.Node `yaml:"podSelector"`
			Template       struct{ Metadata struct{ Labels labels } }
		}
	}
	objects := map[string]manifest{}
	d := yaml.NewDecoder(strings.NewReader(clitest.Read(t, clitest.Tree+"/examples/kubernetes.yaml")))
	for {
		var m manifest
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		clitest.Must(t, err)
		objects[m.Kind] = m
	}
	set, service, budget := objects["StatefulSet"], objects["Service"], objects["PodDisruptionBudget"]
	if set.Spec.Replicas != 5 || budget.Spec.MaxUnavailable != 1 {
		t.Errorf("%d masters of which %d may be taken away, want 5 and 1", set.Spec.Replicas, budget.Spec.MaxUnavailable)
	}
	if service.Spec.ClusterIP != "None" || service.Metadata.Name != set.Spec.ServiceName {
		t.Errorf("the Service %q has the clusterIP %q; the StatefulSet needs a headless one, %q", service.Metadata.Name, service.Spec.ClusterIP, set.Spec.ServiceName)
	}
	var chosen labels
	clitest.Must(t, service.Spec.Selector.Decode(&chosen))
	var matched, shielded struct {
		MatchLabels labels `yaml:"matchLabels"`
	}
	clitest.Must(t, set.Spec.Selector.Decode(&matched))
	policy := objects["NetworkPolicy"]
	clitest.Must(t, policy.Spec.PodSelector.Decode(&shielded))
	if has := set.Spec.Template.Metadata.Labels; !maps.Equal(chosen, has) || !maps.Equal(matched.MatchLabels, has) || !maps.Equal(shielded.MatchLabels, has) {
		t.Errorf("the masters have the labels %v; the Service wants %v, the StatefulSet %v, the NetworkPolicy %v", has, chosen, matched.MatchLabels, shielded.MatchLabels)
	}
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

// The README shows the program of examples/quickstart.
func TestThe_readme_shows_the_quickstart(t *testing.T) {
	_, source, _ := strings.Cut(clitest.Read(t, clitest.Tree+"/examples/quickstart/main.go"), "\n") // the comment that names the README
	if block := "```go\n" + strings.TrimSpace(source) + "\n```"; !strings.Contains(clitest.Read(t, clitest.Tree+"/README.md"), block) {
		t.Fatalf("README.md does not show examples/quickstart/main.go:\n%s", block)
	}
}

// inProduction calls do for every match of what the library's own files say.
func inProduction(t *testing.T, what *regexp.Regexp, do func(file, message string)) {
	t.Helper()
	for _, folder := range []string{"node", "redlock", "redlock/internal/waiting", "quorum", "drift"} {
		files, err := filepath.Glob(filepath.Join(clitest.Tree, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range what.FindAllStringSubmatch(clitest.Read(t, file), -1) {
				do(file, m[1])
			}
		}
	}
}

var warn = regexp.MustCompile(`Warn\("(?:redlock: )?([^":,]+)`)

// An operator who meets a warning finds it in docs/operations.md.
func TestEvery_warning_is_explained(t *testing.T) {
	explained := clitest.Read(t, clitest.Tree+"/docs/operations.md")
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

var logged = regexp.MustCompile(`(?:\.(?:Warn|Info|Debug)\(|Log\(m\.life\.ctx, level, )"([^"]*)`)

// Whoever looks for the library in a log looks for one word.
func TestEvery_log_line_begins_with_the_same_word(t *testing.T) {
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
