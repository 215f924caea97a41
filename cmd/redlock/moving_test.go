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
	return g.command(t, "groups", "apply", "--guard", "5s", "--over", over)
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
	first.WantStderr("redlock: names are moving: nobody gets them for another ")
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
	c.WantStderr("interrupted", "run again with the same groups")

	other := all.apply(t, "a").Begin()
	other.WantExit(cli.ExitFailure)
	other.WantStderr("names are moving to the groups a, b: spread them over these first")

	all.apply(t, "a,b").Begin().WantExit(0)
	all.wantMap(t, "2:a,b")
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

// shortRun prepares redlock run with the TTL of the guard that apply moves by.
func (g someGroups) shortRun(t *testing.T, args ...string) *clitest.Command {
	t.Helper()
	return g.command(t, append([]string{"run", "--ttl", "5s", "--restart-guard", "5s"}, args...)...)
}

func TestRun_locks_in_the_group_that_has_the_name(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.apply(t, "a,b").Begin().WantExit(0)
	name := nameIn(t, []string{"a", "b"}, "b")
	holder := all.shortRun(t, "--ttl", "10s", "--restart-guard", "10s", "--hold", name).Begin()
	holder.Until("it is held in group b", func() bool { return clitest.Holders(t, all["b"], name)[2] != "" })
	taken := all.shortRun(t, "--wait", "0", name, "--", "true").Begin()
	taken.WantExit(cli.ExitBusy)
	holder.Signal(syscall.SIGTERM)
	holder.WantExit(0)
	clitest.WantFree(t, all["a"], name)

	off := all.shortRun(t, "--restart-guard", "0", name, "--", "true").Begin()
	off.WantExit(cli.ExitUsage)
	off.WantStderr("--restart-guard 0: must be at least the TTL, 5s")
}

// A name that moves is waited for as a holder is, also by who has waited in its old group.
func TestRun_waits_for_a_name_that_moves(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	all.apply(t, "a").Begin().WantExit(0)
	holder := all.shortRun(t, "--hold", "orders").Begin()
	holder.Until("it is held in group a", func() bool { return clitest.Holders(t, all["a"], "orders")[2] != "" })
	waiter := all.shortRun(t, "--wait", "1m", "--fenced", "orders", "--", "true").Begin()
	waiter.Until("it is queued", func() bool {
		n, err := all["a"][2].Do("ZCARD", "redlock:queue:orders")
		return err == nil && n == int64(1)
	})
	move := all.apply(t, "b").Begin()
	move.Until("the name moves", func() bool { return markerOf(t, all["b"][2]).Group.Map == "3:a>b" })
	once := all.shortRun(t, "--wait", "0", "orders", "--", "true").Begin()
	once.WantExit(cli.ExitNoQuorum)
	once.WantStderr("another group of masters has the name")
	comer := all.shortRun(t, "--wait", "1m", "orders", "--", "true").Begin()
	holder.WantExit(cli.ExitLost)
	move.WantExit(0)
	waiter.WantExit(0)
	comer.WantExit(0)
	comer.WantStderr("group a, from which the name moves to group b: nobody gets it until then; trying again")
	n, err := all["b"][0].Do("EXISTS", "redlock:token:orders")
	if n != int64(1) || err != nil {
		t.Errorf("the waiter had no token in group b: %v, %v", n, err)
	}
}
