package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

const module = "github.com/quorumlock/quorumlock"

// machine is one that has never seen this library.
type machine struct {
	t   *testing.T
	dir string
	env []string
}

func newMachine(t *testing.T, masters []*redistest.Server) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	proxy := filepath.Join(m.dir, "proxy")
	for _, folder := range append([]string{""}, adapters(t)...) {
		publish(t, proxy, folder)
	}
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	// Other modules come from this machine's cache, which is laid out as a proxy,
	// or from its proxy. They were checked when they came there; ours cannot be in
	// the checksum database. Without paths in what is compiled, it is compiled once
	// and not in every test.
	goenv := strings.Fields(m.run(clitest.Tree, "go env GOMODCACHE GOPROXY"))
	m.env = append(clitest.OwnEnvironment(),
		"GOPROXY=file://"+proxy+",file://"+goenv[0]+"/cache/download,"+goenv[1],
		"GOSUMDB=off", "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOTOOLCHAIN=local",
		"GOPATH="+filepath.Join(m.dir, "go"), "GOMODCACHE="+filepath.Join(m.dir, "modules"), "GOBIN="+filepath.Join(m.dir, "bin"),
		"PATH="+filepath.Join(m.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDG_CONFIG_HOME="+m.dir, "REDLOCK_NODES="+strings.Join(addrs, ","), "REDLOCK_NODE_TIMEOUT=10s")
	return m
}

// adapters are the folders of the modules in contrib that its README has a user get. They stand
// for all of them. The others bring large modules (CertMagic, and an SQLite in Go), which every
// run would compile or fetch; their go.mod differs in nothing but those
// (TestEvery_module_in_contrib_requires_this_version), and make contrib runs their tests.
func adapters(t *testing.T) (folders []string) {
	t.Helper()
	for _, line := range shown(clitest.Between(t, clitest.Read(t, clitest.Tree+"/contrib/README.md"), "```\ngo get", "```")) {
		_, folder, _ := strings.Cut(line, module+"/")
		folders = append(folders, folder)
	}
	return folders
}

// publish puts a folder of this tree into a proxy, as the newest version of its
// module.
func publish(t *testing.T, proxy, folder string) {
	t.Helper()
	name, root := strings.TrimSuffix(module+"/"+folder, "/"), filepath.Join(clitest.Tree, folder)
	versions := filepath.Join(proxy, name, "@v")
	clitest.Must(t, os.MkdirAll(versions, 0o700))
	for file, content := range map[string]string{
		"list":                      "v" + cli.Version + "\n",
		"v" + cli.Version + ".info": fmt.Sprintf(`{"Version": "v%s", "Time": "2026-01-01T00:00:00Z"}`, cli.Version),
		"v" + cli.Version + ".mod":  clitest.Read(t, filepath.Join(root, "go.mod")),
	} {
		clitest.Must(t, os.WriteFile(filepath.Join(versions, file), []byte(content), 0o600))
	}
	archive, err := os.Create(filepath.Join(versions, "v"+cli.Version+".zip"))
	clitest.Must(t, err)
	defer archive.Close()
	z := zip.NewWriter(archive)
	clitest.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		switch {
		case err != nil || inside == ".":
			return err
		case d.IsDir() && leftOut(path):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		w, err := z.Create(name + "@v" + cli.Version + "/" + filepath.ToSlash(inside))
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, clitest.Read(t, path))
		return err
	}))
	clitest.Must(t, z.Close())
}

// leftOut reports whether a folder is not part of the module around it.
func leftOut(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	name := filepath.Base(folder)
	return err == nil || strings.HasPrefix(name, ".") || name == "bin"
}

// shown are the commands in a block, without what explains them.
func shown(block string) (commands []string) {
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		commands = append(commands, strings.TrimSpace(line))
	}
	return commands
}

// command prepares a line of a shell.
func (m *machine) command(dir, line string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	m.t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	c.Dir, c.Env = dir, m.env
	c.WaitDelay = 10 * time.Second
	return c
}

// run runs a line of a shell, which must succeed, and returns what it prints.
func (m *machine) run(dir, line string) string {
	m.t.Helper()
	out, err := m.command(dir, line).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// program makes a module of its own with one program.
func (m *machine) program(name, source string) (dir string) {
	m.t.Helper()
	dir = filepath.Join(m.dir, name)
	clitest.Must(m.t, os.Mkdir(dir, 0o700))
	m.run(dir, "go mod init example.com/"+name)
	clitest.Must(m.t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	return dir
}

// The README, from the first line on: install, declare the masters new, hold a
// lock while a command runs, see who has it, and run the program that is shown.
func TestA_fresh_user_gets_there(t *testing.T) {
	readme := clitest.Read(t, clitest.Tree+"/README.md")
	m := newMachine(t, startComposed(t))

	installs := shown(clitest.Between(t, readme, "## Install\n\n```\n", "```"))
	if len(installs) != 2 {
		t.Fatalf("%q installs, want the library and the operator's command", installs)
	}
	m.run(m.dir, installs[1])
	if got := m.run(m.dir, "redlock version"); !strings.HasPrefix(got, "redlock "+cli.Version+" (v"+cli.Version+")") {
		t.Errorf("version prints %q", got)
	}

	steps := shown(clitest.Between(t, readme, "localhost:7005\n", "```"))
	if len(steps) != 4 {
		t.Fatalf("steps %q, want four", steps)
	}
	for _, step := range steps {
		if strings.HasPrefix(step, "redlock run ") {
			m.runsUnder(step)
		}
		m.run(m.dir, step)
	}

	dir := m.program("nightly", clitest.Between(t, readme, "```go\n", "```"))
	m.run(dir, installs[0])
	if out := m.run(dir, "go run ."); !strings.Contains(out, "step 5 of 5") {
		t.Errorf("the program prints:\n%s", out)
	}
	m.measures()
}

// runsUnder asks who holds the lock while a command runs under it.
func (m *machine) runsUnder(step string) {
	m.t.Helper()
	running := m.command(m.dir, step)
	var said bytes.Buffer
	running.Stdout, running.Stderr = &said, &said
	clitest.Must(m.t, running.Start())
	name := strings.Fields(step)[2]
	seen := clitest.Eventually(time.Minute, func() bool {
		out, _ := m.command(m.dir, "redlock status "+name).Output()
		return strings.Contains(string(out), fmt.Sprintf("%s: held by", name)) && strings.Contains(string(out), fmt.Sprint(running.Process.Pid))
	})
	if err := running.Wait(); err != nil || !seen {
		m.t.Errorf("%s: %v; status shows the holder: %v\n%s", step, err, seen, &said)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	clitest.Must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// measures adds the metrics, each to a module that has nothing else.
func (m *machine) measures() {
	m.t.Helper()
	source := clitest.Read(m.t, clitest.Tree+"/contrib/redlockprom/example_test.go")
	target := freeAddress(m.t)
	for old, now := range map[string]string{
		"package redlockprom_test": "package main",
		"func Example() {":         "func main() {",
		`[]string{"redis-a:6379", "redis-b:6379", "redis-c:6379"}`: fmt.Sprintf("%#v", strings.Split(m.variable("REDLOCK_NODES"), ",")),
		`"localhost:9100"`: fmt.Sprintf("%q", target),
	} {
		if !strings.Contains(source, old) {
			m.t.Fatalf("the example has no %s", old)
		}
		source = strings.ReplaceAll(source, old, now)
	}
	dir := m.program("metrics", source)
	for _, adapter := range adapters(m.t) {
		in := dir
		if adapter != "contrib/redlockprom" {
			in = m.program(path.Base(adapter), "package main\n")
		}
		m.run(in, "go get "+module+"/"+adapter)
	}
	if *clitest.Everything {
		m.run(dir, "go mod tidy")
		m.scraped(dir, target)
	}
}

func (m *machine) variable(name string) (value string) {
	for _, v := range m.env {
		if after, ok := strings.CutPrefix(v, name+"="); ok {
			value = after
		}
	}
	return value
}

// scraped runs the program with the metrics, and has a Prometheus read them.
func (m *machine) scraped(dir, target string) {
	m.t.Helper()
	m.run(dir, "go build -o metrics .")
	m.background(m.command(dir, "./metrics"))
	clitest.Must(m.t, os.WriteFile(filepath.Join(m.dir, "prometheus.yml"), fmt.Appendf(nil,
		"scrape_configs:\n- job_name: redlock\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\n  - targets: [%q]\n", target), 0o600))
	server := freeAddress(m.t)
	m.background(m.command(m.dir, "prometheus --config.file prometheus.yml --storage.tsdb.path data --web.listen-address "+server))
	for query, want := range map[string]string{
		`redlock_leases{lock="mutex"}`: "1",
		"count(redlock_node_up == 1)":  "5",
	} {
		got := ""
		if !clitest.Eventually(time.Minute, func() bool {
			got = answer(server, query)
			return got == want
		}) {
			m.t.Errorf("Prometheus answers %s with %q, want %s", query, got, want)
		}
	}
}

// answer is the one number that a Prometheus answers with, or empty.
func answer(server, query string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + server + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var found struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.NewDecoder(resp.Body).Decode(&found) != nil || len(found.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(found.Data.Result[0].Value[1])
}

// background starts a process that ends with the test.
func (m *machine) background(c *exec.Cmd) {
	m.t.Helper()
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	clitest.Must(m.t, c.Start())
	m.t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if m.t.Failed() {
			m.t.Logf("%s:\n%s", c.Args, &said)
		}
	})
}
