//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestReal_healthcheck_says_whether_a_quorum_votes(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	check := func(code int, args ...string) *clitest.Command {
		t.Helper()
		c := clitest.OnMasters(t, masters, append([]string{"healthcheck"}, args...)...)
		c.Begin().WantExit(code)
		if c.Out.Len() > 0 {
			t.Errorf("written to the standard output: %s", &c.Out)
		}
		return c
	}
	check(cli.ExitNoQuorum, "--timeout", "1s").WantStderr("quarantined for another")
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
	if c := check(0); c.Errors.Len() > 0 {
		t.Errorf("says of masters that are well: %s", &c.Errors)
	}
	for _, begin := range []string{"healthcheck:", "job:"} {
		clitest.Set(t, masters, begin, "web1:42/nonce/7", "PX", 60000)
	}
	check(0)
	check(0, "--try", "job:") // each takes a name that is its own

	for code, setting := range map[string]string{"OOM": "maxmemory", "NOREPLICAS": "min-replicas-to-write"} {
		for _, m := range masters[:3] {
			m.Do("CONFIG", "SET", setting, "1")
		}
		check(cli.ExitNoQuorum, "--timeout", "1s").WantStderr("2 of 5", code)
		for _, m := range masters[:3] {
			m.Do("CONFIG", "SET", setting, "0")
		}
	}

	for _, m := range masters[:3] {
		m.Do("CONFIG", "SET", "maxmemory", "1")
	}
	masters[3].Do("ACL", "SETUSER", "default", "resetkeys", "~redlock:*")
	check(cli.ExitNoQuorum, "--timeout", "1s").WantStderr("OOM")
	for _, m := range masters[:3] {
		m.Do("CONFIG", "SET", "maxmemory", "0")
	}
	for _, m := range masters {
		m.Do("ACL", "SETUSER", "default", "resetkeys", "~redlock:*")
	}
	check(0) // of whose names it knows nothing
	check(cli.ExitConfig, "--timeout", "1s", "--try", "job:").WantStderr("NOPERM")
	for _, m := range masters {
		m.Do("ACL", "SETUSER", "default", "~job:*")
	}
	check(0, "--try", "job:")
	for _, m := range masters[:3] {
		m.Do("CONFIG", "SET", "maxmemory", "1")
	}
	check(cli.ExitNoQuorum, "--timeout", "1s", "--try", "job:").WantStderr("OOM")
	for _, m := range masters[:3] {
		m.Do("CONFIG", "SET", "maxmemory", "0")
	}
	for _, m := range masters {
		m.Do("ACL", "SETUSER", "default", "allkeys", "-set")
	}
	check(cli.ExitConfig, "--timeout", "1s").WantStderr("NOPERM", "'set'")
	for _, m := range masters {
		m.Do("ACL", "SETUSER", "default", "+set")
	}

	masters[0].Kill()
	masters[1].Stop()
	check(0)

	masters[2].Kill()
	check(cli.ExitNoQuorum, "--timeout", "2s").WantStderr("2 of 5 answered", masters[0].Addr(), masters[2].Addr())
	masters[1].Continue()

	lacks := redistest.StartN(t, 3, redistest.User("ann", "pw", "~job", "&*", "+@all"))
	password := filepath.Join(t.TempDir(), "password")
	clitest.Must(t, os.WriteFile(password, []byte("pw"), 0o600))
	c := clitest.OnMasters(t, lacks, "healthcheck", "--timeout", "1s", "--user", "ann", "--password-file", password)
	c.Begin().WantExit(cli.ExitConfig)
	c.WantStderr("NOPERM", "docs/permissions.md")

	check(cli.ExitUsage, "--timeout", "0").WantStderr("--timeout 0s: must be positive")
	check(cli.ExitUsage, "--restart-guard", "0").WantStderr("--restart-guard 0s: must be at least 10ms")
}
