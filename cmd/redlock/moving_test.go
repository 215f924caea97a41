package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

// apply prepares redlock groups apply with a short guard.
func (g someGroups) apply(t *testing.T, over string) *clitest.Command {
	t.Helper()
	return g.command(t, "groups", "apply", "--guard", "1s", "--over", over)
}

// wantMap fails the test unless all masters tell that map.
func (g someGroups) wantMap(t *testing.T, want string) {
	t.Helper()
	for _, s := range g.all() {
		if m := markerOf(t, s); m.Group.Map != want {
			t.Errorf("%s has the map %q, want %q", s.Addr(), m.Group.Map, want)
		}
	}
}

func TestGroups_apply_spreads_the_names(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	first := all.apply(t, "a,b").Begin()
	first.WantExit(0)
	first.WantStdout(all["c"][2].Addr() + ": of group c, has the map 2:a,b")
	first.WantStderr("redlock: names are moving: nobody gets them for another 2s")
	if n := strings.Count(first.Out.String(), "\n"); n != 9 {
		t.Errorf("it says %d lines of 9 masters:\n%s", n, &first.Out)
	}
	second := all.apply(t, "c,b,a").Begin()
	second.WantExit(0)
	all.wantMap(t, "4:a,b,c")

	again := all.apply(t, "a,b,c").Begin()
	again.WantExit(0)
	again.WantStdout("has the map 4:a,b,c")
	if again.Errors.Len() > 0 {
		t.Errorf("nothing moves, and it says\n%s", &again.Errors)
	}
}

func TestGroups_apply_can_be_interrupted_and_run_again(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	c := all.command(t, "groups", "apply")
	c.Begin()
	c.Until("all masters tell that names move", func() bool { return markerOf(t, all["b"][2]).Group.Map == "1:>a,b" })
	c.Signal(syscall.SIGINT)
	c.WantExit(cli.ExitSignal + int(syscall.SIGINT))
	c.WantStderr("interrupted", "run it again with the same groups")

	other := all.apply(t, "a").Begin()
	other.WantExit(cli.ExitFailure)
	other.WantStderr("names are moving to the groups a, b: spread them over these first")

	all.apply(t, "a,b").Begin().WantExit(0)
	all.wantMap(t, "3:a,b")
}

func TestGroups_apply_says_why_it_refuses(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	before := all.dump(t)
	down := clitest.New(t, "groups", "apply", "--nodes", all.nodes()+",127.0.0.1:1").Begin()
	down.WantExit(cli.ExitFailure)
	down.WantStderr("127.0.0.1:1", "connection refused")
	twice := clitest.New(t, "groups", "apply", "--nodes", all.nodes()+",c="+strings.TrimPrefix(all.nodes("a"), "a=")).Begin()
	twice.WantExit(cli.ExitConfig)
	twice.WantStderr("same server")
	if after := all.dump(t); after != before {
		t.Errorf("it has changed\n%sto\n%s", before, after)
	}
}
