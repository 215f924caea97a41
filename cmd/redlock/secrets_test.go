package main

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestNo_part_of_an_address_that_may_be_a_password_is_shown(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{
		"redis://u:hun,ter2@127.0.0.1:1",
		"redis://u:hun,ter2,ter2@127.0.0.1:1,b:1",
		"redis://u:ter2",
		"redis://:ter2",
		"u:ter2@host:1",
		"redis://u:ter2/x@host",
	} {
		for _, args := range [][]string{{"status", "name"}, {"run", "name", "--", "true"}, {"unlock", "--force", "--yes", "name"}} {
			c := clitest.New(t, args...)
			c.Env = append(c.Env, "REDLOCK_NODES="+nodes)
			c.Begin().WantExit(cli.ExitUsage)
			c.WantNoSecret("ter2")
		}
	}
}

func TestA_comma_in_a_password_is_explained(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "status", "name", "--nodes", "redis://u:a,b@h:1")
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr("--nodes", "address 2 of 2", "%2C")
}

// A wrong password is wrong at every attempt: there is nothing to wait for.
func TestA_wrong_password_is_a_configuration_error_at_once(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.Password("right"))
	addrs := make([]string, len(masters))
	for i, s := range masters {
		addrs[i] = s.Addr()
	}
	for name, args := range map[string][]string{
		"run":    {"run", "--wait", "forever", "name", "--", "true"},
		"status": {"status", "name"},
		"list":   {"status"},
		"unlock": {"unlock", "--force", "--yes", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, nodes := range []string{
				"redis://:hunter2@" + strings.Join(addrs, ",redis://:hunter2@"),
				strings.Join(addrs, ","), // none at all
			} {
				c := clitest.New(t, args...)
				c.Env = append(c.Env, "REDLOCK_NODES="+nodes, "REDLOCK_NODE_TIMEOUT=1s")
				c.Begin().WantExit(cli.ExitConfig)
				c.WantNoSecret("hunter2")
			}
		})
	}
}

func TestA_password_from_a_file_is_in_no_environment(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.User("ann", "hunter2"))
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	args := append([]string{"run", "--nodes", strings.Join(addrs, ","), "--user", "ann", "--password-file", "secret",
		"--restart-guard", "0", "--node-timeout", "10s", "name"}, clitest.Sh("env >env; cat /proc/$PPID/cmdline >>env")...)
	c := clitest.New(t, args...)
	c.Write("secret", "hunter2\n")
	c.Begin().WantExit(0)
	if strings.Contains(c.Content("env"), "hunter2") {
		t.Error("the command finds the password in its environment, or in the list of processes")
	}
}

// The command is run for each login, and what it prints is in no environment and no message.
func TestA_password_from_a_command_logs_in_at_every_master(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.User("ann", "hunter2"))
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	args := []string{"--nodes", strings.Join(addrs, ","), "--user", "ann", "--password-command", "echo $REDLOCK_MASTER >>asked; cat secret", "--node-timeout", "10s"}
	c := clitest.New(t, append(append([]string{"run", "--restart-guard", "0"}, append(args, "name")...), clitest.Sh("env >env")...)...)
	c.Write("secret", "hunter2\n2100-01-02T03:04:05Z\n")
	c.Begin().WantExit(0)
	for _, addr := range addrs {
		if !strings.Contains(c.Content("asked"), addr) {
			t.Errorf("not asked for %s: %s", addr, c.Content("asked"))
		}
	}
	if strings.Contains(c.Content("env"), "hunter2") {
		t.Error("the command under the lock finds the password in its environment")
	}

	fails := clitest.New(t, append(append([]string{"status"}, args...), "name")...)
	fails.Write("secret", "hunter2\nhunter2\n")
	fails.Begin().WantExit(cli.ExitNoQuorum)
	fails.WantStderr("--password-command", "the second line", "RFC 3339")
	fails.WantNoSecret("hunter2")
}

// A command that fetches a token takes seconds, and one that hangs is named.
func TestA_command_for_the_password_has_ten_seconds(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.Password("hunter2"))
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	for pause, want := range map[string]int{"6": exitFree, "100": cli.ExitNoQuorum} {
		t.Run(pause, func(t *testing.T) {
			t.Parallel()
			c := clitest.New(t, "status", "--nodes", strings.Join(addrs, ","), "--password-command", "sleep "+pause+"; echo hunter2", "--node-timeout", "10s", "name")
			c.Begin().WantExit(want)
			if want != exitFree {
				c.WantStderr("credentials: none within 10s")
			}
		})
	}
}

func TestTLS_by_flags(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.TLS(), redistest.Config("tls-auth-clients", "yes"))
	ca, cert, key := masters[0].CertificateFiles()
	args := []string{"status", "--nodes", strings.Join(redistest.URLs(masters), ","), "--node-timeout", "1s", "name"}
	c := clitest.New(t, append(args, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key)...)
	c.Begin().WantExit(exitFree)
	c = clitest.New(t, args...)
	c.Begin().WantExit(cli.ExitNoQuorum)
	c.WantStderr("certificate")
}

func TestWait_includes_connecting(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	masters[0].Stop()
	masters[1].Stop()
	c := clitest.OnMasters(t, masters, "run", "--wait", "300ms", "name", "--", "true")
	c.Begin().WantExit(cli.ExitNoQuorum)
	c.WantStderr("timed out")
	if strings.Contains(c.Errors.String(), "deadline") {
		t.Errorf("a timeout does not read as one: %s", &c.Errors)
	}
}
