package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// write puts a file into the folder where the process runs.
func (c *command) write(name, content string) string {
	c.t.Helper()
	path := c.file(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// The command line goes before the environment, which goes before the file.
func TestConfigurationByFlagEnvironmentAndFile(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, s := range masters {
		for key, value := range map[string]string{"file:name": "of/the/file x", "env:name": "of/the/env x", "flag:name": "of/the/flag x"} {
			if _, err := s.Do("SET", key, value, "PX", 60000); err != nil {
				t.Fatal(err)
			}
		}
	}
	addrs := make([]string, len(masters))
	for i, s := range masters {
		addrs[i] = s.Addr()
	}
	file := "nodes: [" + strings.Join(addrs, ", ") + "]\nprefix: 'top:'\nstatus:\n  node-timeout: 1s\n  prefix: 'file:'\n"

	c := redlockCommand(t, "status", "name")
	c.write("redlock/config.yaml", file) // in XDG_CONFIG_HOME
	c.start().wantExit(0)
	c.wantStdout("by of")

	c = redlockCommand(t, "status", "--json", "name")
	c.Env = append(c.Env, "REDLOCK_CONFIG="+c.write("other.yaml", file))
	c.start().wantExit(0)
	c.wantStdout("of/the/file")

	c = redlockCommand(t, "status", "--json", "name", "--config", "other.yaml")
	c.write("other.yaml", file)
	c.Env = append(c.Env, "REDLOCK_PREFIX=env:", "REDLOCK_CONFIG=/none")
	c.start().wantExit(0)
	c.wantStdout("of/the/env")

	c = redlockCommand(t, "status", "name", "--config", "other.yaml", "--prefix", "flag:")
	c.write("other.yaml", file)
	c.Env = append(c.Env, "REDLOCK_PREFIX=env:", "REDLOCK_JSON=true")
	c.start().wantExit(0)
	c.wantStdout("of/the/flag", `"held": true`)
}

func TestConfigurationErrorsNameThePlaceAndNotTheValue(t *testing.T) {
	for content, says := range map[string][]string{
		"ttk: hunter2":                 {"config.yaml:1", "ttk", "no such flag", "did you mean ttl?"},
		"run:\n  seeds: hunter2":       {"config.yaml:2", "seeds", "redlock run"},
		"status:\n  ttl: {a: hunter2}": {"config.yaml:2", "ttl"},
		"nodes: {a: hunter2}":          {"config.yaml:1", "nodes: must be a value or a list of values"},
		"rnu: {ttl: hunter2}":          {"config.yaml:1", "rnu: there is no command or flag of that name"},
		"simulate:\n  nodes: hunter2":  {"config.yaml:2", "nodes", "only the command line"},
		"- hunter2":                    {"config.yaml", "YAML mapping"},
		"run:\n  ttl: [[hunter2]]":     {"config.yaml:2", "ttl", "list of values"},
	} {
		c := redlockCommand(t, "run", "name", "--", "true")
		c.write("redlock/config.yaml", content)
		c.start().wantExit(exitUsage)
		c.wantStderr(says...)
		if strings.Contains(c.stderr.String(), "hunter2") {
			t.Errorf("%q: a value is in the error: %s", content, &c.stderr)
		}
	}
}

func TestAnEnvironmentVariableThatMakesNoSenseIsNamed(t *testing.T) {
	c := redlockCommand(t, "run", "name", "--", "true")
	c.Env = append(c.Env, "REDLOCK_TTL=soon")
	c.start().wantExit(exitUsage)
	c.wantStderr(`redlock: REDLOCK_TTL "soon": must be a duration such as 90s`)
}

// A variable that sets nothing because of a wrong letter is named, and what is
// none of our business is not.
func TestAMisspeltVariableIsNamed(t *testing.T) {
	c := redlockCommand(t, "simulate", "--list")
	c.Env = append(c.Env, "REDLOCK_NODE_TIMOUT=3s", "REDLOCK_PASSWORD=hunter2", "REDLOCK_WAIT=1m", "REDLOCK_TOKEN=7", "REDLOCK_TLL=",
		"REDLOCK_SERVICE_HOST=10.0.0.1", "REDLOCK_SERVICE_PORT=1", "REDLOCK_PORT=tcp://10.0.0.1:1", "REDLOCK_PORT_1_TCP_PROTO=tcp")
	c.start().wantExit(0)
	want := []string{
		"redlock: REDLOCK_NODE_TIMOUT is ignored: did you mean REDLOCK_NODE_TIMEOUT?",
		"redlock: REDLOCK_PASSWORD is ignored: did you mean REDLOCK_PASSWORD_FILE?",
	}
	got := strings.Split(strings.TrimSpace(c.stderr.String()), "\n")
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("it warns %q, want %q", got, want)
	}
}

// Nobody's masters become part of a show or a benchmark because a variable is
// set, and the simulator has none.
func TestTheDemoTheBenchmarkAndTheSimulatorTakeMastersFromTheCommandLineOnly(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		nodes := cmd.Flags().Lookup("nodes")
		if nodes == nil {
			continue
		}
		want := cmd.Name() == "demo" || cmd.Name() == "bench" || cmd.Name() == "simulate"
		if got := nodes.Annotations[onlyGiven] != nil; got != want {
			t.Errorf("%s: --nodes only from the command line: %v, want %v", cmd.Name(), got, want)
		}
	}
}

// Whoever has told the shell where the masters are can simulate all the same.
func TestTheSimulatorIgnoresRealMasters(t *testing.T) {
	c := redlockCommand(t, "simulate", "--list")
	c.Env = append(c.Env, "REDLOCK_NODES=a:6379,b:6379,c:6379", "REDLOCK_TTL=90s")
	c.write("redlock/config.yaml", "nodes: [a:6379, b:6379, c:6379]\nttl: 1m")
	c.start().wantExit(0)
	c.wantStdout("restart-amnesia")
}

func TestACommandThatDoesNotExistIsRefusedInOneLine(t *testing.T) {
	c := redlockCommand(t, "runn", "name")
	c.start().wantExit(exitUsage)
	c.wantStderr(`unknown command "runn" for "redlock"; did you mean: run (see redlock --help)`)
}
