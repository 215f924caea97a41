package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestStatus_without_a_name_lists_what_a_quorum_holds(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters, "app:both", "web1:42/nonce/7 nightly", "PX", 60000)
	clitest.Set(t, masters[1:], "app:two", "web2:1/nonce/9", "PX", 60000)
	clitest.Set(t, masters[:1], "app:one", "web3:1/nonce/9", "PX", 60000)
	clitest.Set(t, masters[:2], "app:split", "a", "PX", 60000)
	clitest.Set(t, masters[1:], "app:for\x1bever", "somebody else's")
	clitest.Set(t, masters, "other", "web1:42/nonce/7", "PX", 60000)
	clitest.Set(t, masters, "app:redlock:marker", "no lock")
	masters[0].Do("SET", "app:split", "b")
	for _, s := range masters {
		if _, err := s.Do("SADD", "app:set", "x"); err != nil {
			t.Fatal(err)
		}
	}

	c := clitest.OnMasters(t, masters, "status", "--prefix", "app:")
	c.Begin().WantExit(0)
	lines := strings.Split(strings.TrimSpace(c.Out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("want a heading and three locks, got:\n%s", &c.Out)
	}
	for i, parts := range [][]string{{"LOCK", "HELD BY"}, {"both", "web1:42 (nightly)", "3"}, {`"for\x1bever"`, "another library", "no expiry", "2"}, {"two", "web2:1", "2"}} {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d does not say %q: %s", i, part, lines[i])
			}
		}
	}

	c = clitest.OnMasters(t, masters, "status", "--json", "--prefix", "app:")
	c.Begin().WantExit(0)
	var got listing
	if err := json.Unmarshal(c.Out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Locks) != 3 || !got.Complete || got.Locks[0].Client != "web1:42" || got.Locks[1].RemainingMS != -1 || got.Locks[2].Masters != 2 {
		t.Errorf("JSON: %+v", got)
	}

	masters[0].Kill()
	c = clitest.OnMasters(t, masters, "status", "--prefix", "app:")
	c.Begin().WantExit(0)
	masters[1].Kill()
	c = clitest.OnMasters(t, masters, "status")
	c.Begin().WantExit(cli.ExitNoQuorum)
	c.WantStderr("no quorum", masters[1].Addr())
}

func TestA_list_is_bounded_and_says_so(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1)
	if _, err := masters[0].Do("EVAL", "for i = 1, 5000 do redis.call('set', 'key' .. i, 'value') end", 0); err != nil {
		t.Fatal(err)
	}
	c := clitest.OnMasters(t, masters, "status", "--limit", "1000")
	c.Begin().WantExit(0)
	c.WantStdout("more keys than --limit")
	if n := strings.Count(c.Out.String(), "\n"); n > 3000 {
		t.Errorf("%d lines for a limit of 1000 keys", n)
	}
}

func TestA_list_fits_eighty_columns(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1)
	clitest.Set(t, masters, strings.Repeat("long-name-", 20), strings.Repeat("host", 30)+":1/n/1 "+strings.Repeat("metadata ", 30), "PX", 60000)
	c := clitest.OnMasters(t, masters, "status")
	c.Begin().WantExit(0)
	for line := range strings.Lines(c.Out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestLock_names_are_completed(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters, "deploy:web", "web1:42/nonce/7", "PX", 60000)
	c := clitest.OnMasters(t, masters, "__complete", "status", "")
	c.Begin().WantExit(0)
	c.WantStdout("deploy:web")
}

func TestForced_Unlock_deletes_the_lock_everywhere(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters[:2], "name", "web1:42/nonce/7 nightly", "PX", 60000)
	clitest.Set(t, masters[2:], "name", "other")
	c := clitest.OnMasters(t, masters, "unlock", "--force", "--yes", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	c.WantStdout("held by web1:42 (nightly)", "deleted")
	clitest.WantFree(t, masters, "name")
}

func TestForced_Unlock_says_that_nobody_held_the_lock(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters[:1], "name", "web1:42/nonce/7", "PX", 60000) // a minority
	c := clitest.OnMasters(t, masters, "unlock", "--force", "--yes", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	c.WantStdout("name: it was free; what a minority of the masters may have ends with its TTL")
	// It may be a waiter's, whom a release would give the lock to.
	if left, err := masters[0].Do("PTTL", "name"); err != nil || left.(int64) <= 0 {
		t.Errorf("PTTL %v, %v", left, err)
	}
}

// Nothing is deleted where nobody can be asked and --yes is not given.
func TestForced_Unlock_needs_a_yes(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters, "name", "web1:42/nonce/7", "PX", 60000)
	c := clitest.OnMasters(t, masters, "unlock", "--force", "--node-timeout", "1s", "name")
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr("--yes")
	if got := clitest.Holders(t, masters, "name"); got[0] == "" || got[1] == "" || got[2] == "" {
		t.Errorf("the masters have %q", got)
	}
}
