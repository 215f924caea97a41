package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// The command line goes before the environment, which goes before the file.
func TestConfiguration_by_flag_environment_and_file(t *testing.T) {
	t.Parallel()
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

	c := clitest.New(t, "status", "name")
	c.Write("redlock/config.yaml", file) // in XDG_CONFIG_HOME
	c.Begin().WantExit(0)
	c.WantStdout("by of")

	c = clitest.New(t, "status", "--json", "name")
	c.Env = append(c.Env, "REDLOCK_CONFIG="+c.Write("other.yaml", file))
	c.Begin().WantExit(0)
	c.WantStdout("of/the/file")

	c = clitest.New(t, "status", "--json", "name", "--config", "other.yaml")
	c.Write("other.yaml", file)
	c.Env = append(c.Env, "REDLOCK_PREFIX=env:", "REDLOCK_CONFIG=/none")
	c.Begin().WantExit(0)
	c.WantStdout("of/the/env")

	c = clitest.New(t, "status", "name", "--config", "other.yaml", "--prefix", "flag:")
	c.Write("other.yaml", file)
	c.Env = append(c.Env, "REDLOCK_PREFIX=env:", "REDLOCK_JSON=true")
	c.Begin().WantExit(0)
	c.WantStdout("of/the/flag", `"held": true`)
}

func TestConfiguration_errors_name_the_place_and_not_the_value(t *testing.T) {
	t.Parallel()
	for content, says := range map[string][]string{
		"ttk: hunter2":                 {"config.yaml:1", "ttk", "no flag of any command", "did you mean ttl?"},
		"run:\n  seeds: hunter2":       {"config.yaml:2", "seeds", "redlock run"},
		"status:\n  ttl: {a: hunter2}": {"config.yaml:2", "ttl"},
		"nodes: {a: hunter2}":          {"config.yaml:1", "nodes: must be a value or a list of values"},
		"rnu: {ttl: hunter2}":          {"config.yaml:1", "rnu: unknown command or flag"},
		"unlock:\n  force: hunter2":    {"config.yaml:2", "force", "only the command line"},
		"- hunter2":                    {"config.yaml", "YAML mapping"},
		"run:\n  ttl: [[hunter2]]":     {"config.yaml:2", "ttl", "list of values"},
	} {
		c := clitest.New(t, "run", "name", "--", "true")
		c.Write("redlock/config.yaml", content)
		c.Begin().WantExit(cli.ExitUsage)
		c.WantStderr(says...)
		if strings.Contains(c.Errors.String(), "hunter2") {
			t.Errorf("%q: a value is in the error: %s", content, &c.Errors)
		}
	}
}

func TestAn_environment_variable_that_makes_no_sense_is_named(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "run", "name", "--", "true")
	c.Env = append(c.Env, "REDLOCK_TTL=soon")
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr(`redlock: REDLOCK_TTL "soon": must be a duration such as 90s`)
}

// A variable that sets nothing because of a wrong letter is named, and what is
// none of our business is not.
func TestA_misspelt_variable_is_named(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "version")
	c.Env = append(c.Env, "REDLOCK_NODE_TIMOUT=3s", "REDLOCK_PASSWORD=hunter2", "REDLOCK_WAIT=1m", "REDLOCK_TOKEN=7", "REDLOCK_TLL=",
		"REDLOCK_SERVICE_HOST=10.0.0.1", "REDLOCK_SERVICE_PORT=1", "REDLOCK_PORT=tcp://10.0.0.1:1", "REDLOCK_PORT_1_TCP_PROTO=tcp")
	c.Begin().WantExit(0)
	want := []string{
		"redlock: REDLOCK_NODE_TIMOUT is ignored: did you mean REDLOCK_NODE_TIMEOUT?",
		"redlock: REDLOCK_PASSWORD is ignored: did you mean REDLOCK_PASSWORD_FILE?",
	}
	got := strings.Split(strings.TrimSpace(c.Errors.String()), "\n")
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("it warns %q, want %q", got, want)
	}
}

func TestA_command_that_does_not_exist_is_refused_in_one_line(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "runn", "name")
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr(`unknown command "runn" for "redlock"; did you mean: run (see redlock --help)`)
}
