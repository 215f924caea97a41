package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/spread"
)

// nameIn returns a name that a map has in a group.
func nameIn(t *testing.T, groups []string, group string) string {
	t.Helper()
	for i := range 1000 {
		if name := fmt.Sprint("orders-", i); spread.Highest(groups, name) == group {
			return name
		}
	}
	t.Fatalf("no name is in group %s", group)
	return ""
}

func TestStatus_asks_the_group_that_has_the_name(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	name := nameIn(t, []string{"a", "b"}, "b")
	clitest.Set(t, all["b"], name, "web1:42/nonce/7", "PX", 60000)

	c := all.command(t, "status", name).Begin()
	c.WantExit(0)
	c.WantStdout("held by web1:42", "group: b\n", all["b"][2].Addr())

	c = all.command(t, "status", "--json", name).Begin()
	c.WantExit(0)
	var got status
	clitest.Must(t, json.Unmarshal(c.Out.Bytes(), &got))
	if got.Group != "b" || !got.Held || got.MovesTo != nil || got.OtherGroup != "" {
		t.Errorf("JSON: %+v", got)
	}

	c = all.command(t, "status").Begin()
	c.WantExit(0)
	wantSaid(t, c, "MASTERS GROUP", "web1:42")
	wantSaid(t, c, " 3 b")
	all.command(t, "status", "--group", "a", name).Begin().WantExit(exitFree)
}

func TestStatus_lists_the_locks_of_the_other_groups_when_one_has_no_quorum(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	clitest.Set(t, all["b"], nameIn(t, []string{"a", "b"}, "b"), "web1:42/nonce/7", "PX", 60000)
	all["a"][0].Stop()
	all["a"][1].Stop()

	list := all.command(t, "status", "--json").Begin()
	list.WantExit(cli.ExitNoQuorum)
	list.WantStderr("group a", "no quorum", all["a"][0].Addr())
	var got listing
	clitest.Must(t, json.Unmarshal(list.Out.Bytes(), &got))
	if len(got.Locks) != 1 || got.Complete || !slices.Equal(got.Unread, []string{"a"}) {
		t.Errorf("JSON: %+v", got)
	}
	text := all.command(t, "status").Begin()
	text.WantExit(cli.ExitNoQuorum)
	text.WantStdout("web1:42")
	if strings.Contains(text.Out.String(), "--limit") {
		t.Errorf("it blames the limit:\n%s", &text.Out)
	}
	blocked := all.command(t, "status", "--blocked").Begin()
	blocked.WantExit(cli.ExitNoQuorum)
	blocked.WantStdout("nobody waits")
	blocked.WantStderr("group a", "no quorum")
	if strings.Contains(blocked.Out.String(), "--limit") {
		t.Errorf("it blames the limit:\n%s", &blocked.Out)
	}
	blocked = all.command(t, "status", "--blocked", "--json").Begin()
	blocked.WantExit(cli.ExitNoQuorum)
	var waits blocking
	clitest.Must(t, json.Unmarshal(blocked.Out.Bytes(), &waits))
	if waits.Complete || !slices.Equal(waits.Unread, []string{"a"}) {
		t.Errorf("JSON: %+v", waits)
	}

	for _, s := range all["b"] {
		s.Do("FLUSHALL")
	}
	for _, what := range [][]string{{"status"}, {"status", "--blocked"}} {
		nothing := all.command(t, what...).Begin()
		nothing.WantExit(cli.ExitNoQuorum)
		if nothing.Out.Len() > 0 {
			t.Errorf("%q says of locks that it cannot see:\n%s", what, &nothing.Out)
		}
	}
}

// That a group cannot be read does not hide that another one was not read to the end.
func TestA_list_of_groups_is_bounded_and_says_so_though_one_has_no_quorum(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	for _, s := range all["a"] {
		if _, err := s.Do("EVAL", "for i = 1, 5000 do redis.call('set', 'key' .. i, 'value') end", 0); err != nil {
			t.Fatal(err)
		}
	}
	saysSo := func(code int) {
		t.Helper()
		for _, what := range [][]string{{"status", "--limit", "1000"}, {"status", "--blocked", "--limit", "1000"}} {
			c := all.command(t, what...).Begin()
			c.WantExit(code)
			c.WantStdout("more keys than --limit")
		}
	}
	saysSo(0)
	all["b"][0].Stop()
	all["b"][1].Stop()
	saysSo(cli.ExitNoQuorum)
}

func TestStatus_of_a_name_that_moves_asks_both_groups(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "3:a>a,b")
	name := nameIn(t, []string{"a", "b"}, "b")
	clitest.Set(t, all["a"], name, "web1:42/nonce/7", "PX", 60000)

	c := all.command(t, "status", name).Begin()
	c.WantExit(0)
	wantSaid(t, c, "held by web1:42", "group: a, from which the name moves to group b: nobody gets it until then", all["a"][0].Addr(),
		name+": free", "group: b, to which the name moves", all["b"][0].Addr())

	c = all.command(t, "status", "--json", name).Begin()
	c.WantExit(0)
	var got status
	clitest.Must(t, json.Unmarshal(c.Out.Bytes(), &got))
	if got.Group != "a" || !got.Held || got.MovesTo == nil || got.MovesTo.Group != "b" || got.MovesTo.Held {
		t.Errorf("JSON: %+v", got)
	}

	c = all.command(t, "unlock", "--force", "--yes", name).Begin()
	c.WantExit(cli.ExitNoQuorum)
	c.WantStderr("group a, from which the name moves to group b")

	stays := nameIn(t, []string{"a", "b"}, "a")
	c = all.command(t, "status", stays).Begin()
	c.WantExit(exitFree)
	c.WantStdout("group: a\n")
}

// Without the map, or the masters of a group, the command does not know who has a name.
func TestStatus_says_why_it_cannot_find_the_group(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	c := all.command(t, "status", "orders").Begin()
	c.WantExit(cli.ExitNoQuorum)
	c.WantStderr("no master tells a map of groups (see redlock groups)")

	tell(t, all.all(), "2:a,b,c")
	c = all.command(t, "status", nameIn(t, []string{"a", "b", "c"}, "c")).Begin()
	c.WantExit(cli.ExitConfig)
	c.WantStderr("is in group c, which --nodes does not give")

	c = clitest.New(t, "status", "--nodes", "a=127.0.0.1:1,b=127.0.0.1:1", "orders").Begin()
	c.WantExit(cli.ExitNoQuorum)
	c.WantStderr("connection refused")
	c = all.command(t, "status", "redlock:x").Begin()
	c.WantExit(cli.ExitUsage)
}

func TestUnlock_deletes_the_lock_in_its_group(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	name := nameIn(t, []string{"a", "b"}, "b")
	clitest.Set(t, all["b"], name, "web1:42/nonce/7", "PX", 60000)
	c := all.command(t, "unlock", "--force", "--yes", name).Begin()
	c.WantExit(0)
	clitest.WantFree(t, all["b"], name)
}

// Who waits for whom is seen over all groups.
func TestStatus_blocked_is_about_all_groups(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	name := nameIn(t, []string{"a", "b"}, "b")
	clitest.Set(t, all["b"], name, "web1:42/nonce/7", "PX", 60000)
	waiter := all.shortRun(t, "--wait", "1m", name, "--", "true").Begin()
	waiter.Until("it shows who waits", func() bool {
		c := all.command(t, "status", "--blocked").Begin()
		return c.End() == 0 && strings.Contains(c.Out.String(), "web1:42")
	})
}
