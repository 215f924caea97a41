package main

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func (c *command) wantStdout(parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(c.stdout.String(), part) {
			c.t.Errorf("stdout does not say %q:\n%s", part, &c.stdout)
		}
	}
}

func (c *command) wantNoSecret(secret string) {
	c.t.Helper()
	if strings.Contains(c.stdout.String()+c.stderr.String(), secret) {
		c.t.Errorf("the password is shown:\n%s%s", &c.stdout, &c.stderr)
	}
}

func TestNoPartOfAnAddressThatMayBeAPasswordIsShown(t *testing.T) {
	for _, nodes := range []string{
		"redis://u:hun,ter2@127.0.0.1:1",
		"redis://u:hun,ter2,ter2@127.0.0.1:1,b:1",
		"redis://u:ter2",
		"redis://:ter2",
		"u:ter2@host:1",
		"redis://u:ter2/x@host",
	} {
		for _, args := range [][]string{{"status", "name"}, {"run", "name", "--", "true"}, {"unlock", "--force", "--yes", "name"}} {
			c := redlockCommand(t, args...)
			c.Env = append(c.Env, "REDLOCK_NODES="+nodes)
			c.start().wantExit(exitUsage)
			c.wantNoSecret("ter2")
		}
	}
}

func TestACommaInAPasswordIsExplained(t *testing.T) {
	c := redlockCommand(t, "status", "name", "--nodes", "redis://u:a,b@h:1")
	c.start().wantExit(exitUsage)
	c.wantStderr("--nodes", "address 2 of 2", "%2C")
}

// A wrong password is wrong at every attempt: there is nothing to wait for.
func TestAWrongPasswordIsAConfigurationErrorAtOnce(t *testing.T) {
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
				c := redlockCommand(t, args...)
				c.Env = append(c.Env, "REDLOCK_NODES="+nodes, "REDLOCK_NODE_TIMEOUT=1s")
				c.start().wantExit(exitConfig)
				c.wantNoSecret("hunter2")
			}
		})
	}
}

func TestAPasswordFromAFileIsInNoEnvironment(t *testing.T) {
	masters := redistest.StartN(t, 3, redistest.User("ann", "hunter2"))
	var addrs []string
	for _, s := range masters {
		addrs = append(addrs, s.Addr())
	}
	args := append([]string{"run", "--nodes", strings.Join(addrs, ","), "--user", "ann", "--password-file", "secret",
		"--restart-guard", "0", "--node-timeout", "10s", "name"}, sh("env >env; cat /proc/$PPID/cmdline >>env")...)
	c := redlockCommand(t, args...)
	c.write("secret", "hunter2\n")
	c.start().wantExit(0)
	if strings.Contains(c.content("env"), "hunter2") {
		t.Error("the command finds the password in its environment, or in the list of processes")
	}
}

func TestTLSByFlags(t *testing.T) {
	masters := redistest.StartN(t, 3, redistest.TLS(), redistest.Config("tls-auth-clients", "yes"))
	ca, cert, key := masters[0].CertificateFiles()
	args := []string{"status", "--nodes", strings.Join(redistest.URLs(masters), ","), "--node-timeout", "1s", "name"}
	c := redlockCommand(t, append(args, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key)...)
	c.start().wantExit(exitFree)
	c = redlockCommand(t, args...)
	c.start().wantExit(exitNoQuorum)
	c.wantStderr("certificate")
}

func TestWaitIncludesConnecting(t *testing.T) {
	masters := redistest.StartN(t, 3)
	masters[0].Stop()
	masters[1].Stop()
	c := onMasters(t, masters, "run", "--wait", "300ms", "name", "--", "true")
	c.start().wantExit(exitNoQuorum)
	c.wantStderr("timed out")
	if strings.Contains(c.stderr.String(), "deadline") {
		t.Errorf("a timeout does not read as one: %s", &c.stderr)
	}
}
