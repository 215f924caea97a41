package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
)

func TestInit_spares_new_masters_the_restart_guard(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.OnMasters(t, masters, "init").Begin()
	c.WantExit(0)
	c.WantStdout("marked as new")

	run := clitest.OnMasters(t, masters, append([]string{"run", "--ttl", "1h", "--node-timeout", "1s", "name"}, clitest.Sh("true")...)...)
	run.Begin().WantExit(0)

	again := clitest.OnMasters(t, masters, "init").Begin()
	again.WantExit(0)
	again.WantStdout("was marked already")
}

// The hint of an attempt that was refused is true when it is read.
func TestInit_works_right_after_the_attempt_that_advised_it(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	attempt := func() *clitest.Command {
		return clitest.OnMasters(t, masters, append([]string{"run", "--wait", "0", "--ttl", "1h", "--node-timeout", "10s", "name"}, clitest.Sh("true")...)...).Begin()
	}
	refused := attempt()
	refused.WantExit(cli.ExitNoQuorum)
	refused.WantStderr("redlock init spares new masters that")

	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)

	attempt().WantExit(0)
}

func TestInit_refuses_masters_that_have_locks(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	masters[1].Do("SET", "orders", "somebody", "PX", "60000")
	c := clitest.OnMasters(t, masters, "init").Begin()
	c.WantExit(cli.ExitFailure)
	c.WantStderr(masters[1].Addr(), "not new", `"orders"`)
	for _, s := range masters {
		if v, _ := s.Do("EXISTS", "redlock:marker"); v != int64(0) {
			t.Errorf("%s was marked", s.Addr())
		}
	}
}

// A master that is full would be marked in vain, after others were.
func TestInit_marks_no_master_where_one_stores_nothing(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	refuse := func(flags ...string) {
		t.Helper()
		was := make([]any, len(masters))
		for i, s := range masters {
			was[i], _ = s.Do("GET", "redlock:marker")
		}
		masters[2].Do("CONFIG", "SET", "maxmemory", "1")
		c := clitest.OnMasters(t, masters, append([]string{"init"}, flags...)...).Begin()
		c.WantExit(cli.ExitFailure)
		c.WantStderr(masters[2].Addr(), "OOM")
		masters[2].Do("CONFIG", "SET", "maxmemory", "0")
		for i, s := range masters {
			if is, _ := s.Do("GET", "redlock:marker"); !reflect.DeepEqual(is, was[i]) {
				t.Errorf("init %q: %s has the marker %q, had %q", flags, s.Addr(), is, was[i])
			}
		}
	}
	refuse()
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
	refuse("--regroup", "--group", "other")
}

// Beside masters in use, the one without a marker is named, and the reason is given
// once. A client that sees it does not advise an init that would refuse.
func TestInit_names_the_master_that_is_not_new_beside_others_in_use(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
	forgetInit(t, masters)
	for _, s := range masters[3:] {
		if _, err := s.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		c := clitest.OnMasters(t, masters, "init").Begin()
		c.WantExit(cli.ExitFailure)
		c.WantStderr(s.Addr(), "other masters are in use")
		if n := strings.Count(c.Errors.String(), "in use"); n != 1 {
			t.Errorf("it says that %d times:\n%s", n, &c.Errors)
		}
		for _, other := range masters[:3] {
			if strings.Contains(c.Errors.String(), other.Addr()) {
				t.Errorf("it names %s, which is in use:\n%s", other.Addr(), &c.Errors)
			}
		}
	}
	run := clitest.OnMasters(t, masters, append([]string{"run", "--node-timeout", "5s", "lock"}, clitest.Sh("true")...)...)
	run.Begin().WantExit(0)
	run.WantStderr(masters[3].Addr(), "redlock init spares new masters that")
}

// forgetInit has masters that were declared new be in use: for a minute it could have
// been an init that failed halfway.
func forgetInit(t *testing.T, masters []*redistest.Server) {
	t.Helper()
	for _, s := range masters {
		stored, err := s.Do("GET", "redlock:marker")
		if err != nil {
			t.Fatal(err)
		}
		m, err := guard.ParseMarker(string(stored.([]byte)))
		if err != nil {
			t.Fatal(err)
		}
		aged := guard.NewMaster(m.RunID, time.Now().Add(-time.Hour), m.Hold, m.Group)
		if _, err := s.Do("SET", "redlock:marker", aged.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInit_regroups_masters_that_are_in_use(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	clitest.OnMasters(t, masters[:3], "init").Begin().WantExit(0)
	refused := clitest.OnMasters(t, masters, short("name")...).Begin()
	refused.WantExit(cli.ExitConfig)
	refused.WantStderr("another group")

	c := clitest.OnMasters(t, masters, "init", "--regroup", "--guard", "5s").Begin()
	c.WantExit(0)
	c.WantStdout("may vote in", "was one of 3 masters")
	wait := clitest.OnMasters(t, masters, short("--wait", "20s", "name")...)
	wait.Begin().WantExit(0)

	old := clitest.OnMasters(t, masters[:3], short("name")...).Begin()
	old.WantExit(cli.ExitConfig)
	few := clitest.OnMasters(t, masters[:2], "init", "--regroup").Begin()
	few.WantExit(cli.ExitFailure) // the masters were asked
	few.WantStderr("a quorum of it must be among them")
}

// Who has regrouped them need not look for a client.
func TestInit_after_a_Regroup_says_that_the_masters_do_not_vote_yet(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.OnMasters(t, masters, "init", "--regroup").Begin().WantExit(0)

	c := clitest.OnMasters(t, masters, "init").Begin()

	c.WantExit(cli.ExitFailure)
	c.WantStderr("it was marked ", " ago; it may vote in ")
	if strings.Contains(c.Errors.String(), "client") {
		t.Errorf("it speaks of a client, and there was none:\n%s", &c.Errors)
	}
}

// short is redlock run with a short TTL and as short a restart guard.
func short(args ...string) []string {
	return append(append([]string{"run", "--ttl", "5s", "--restart-guard", "5s", "--node-timeout", "1900ms"}, args...), clitest.Sh("true")...)
}

func TestInit_says_that_a_master_refuses_us(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	if _, err := masters[1].Do("CONFIG", "SET", "requirepass", "hunter2"); err != nil {
		t.Fatal(err)
	}
	c := clitest.OnMasters(t, masters, "init").Begin()
	c.WantExit(cli.ExitConfig)
	c.WantStderr(masters[1].Addr(), "NOAUTH")
}

// Who tries once is told once that the masters do not vote yet.
func TestA_quarantine_is_told_once(t *testing.T) {
	t.Parallel()
	c := clitest.OnMasters(t, redistest.StartN(t, 3), "run", "--wait", "0", "--node-timeout", "10s", "lock", "--", "true").Begin()
	c.WantExit(cli.ExitNoQuorum)
	c.WantStderr("quarantined for another ", "redlock init")
	if n := strings.Count(c.Errors.String(), "\n"); n != 1 {
		t.Errorf("it says that in %d lines:\n%s", n, &c.Errors)
	}
}

// A list of masters that cannot be right is no mistake that another try repairs.
func TestMasters_of_another_group_or_listed_twice_have_an_exit_code_of_their_own(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.OnMasters(t, masters[:2], "init").Begin().WantExit(0)
	twice := masters[2].Addr() + "," + strings.Replace(masters[2].Addr(), "127.0.0.1", "localhost", 1)
	for _, c := range []*clitest.Command{
		clitest.OnMasters(t, masters, short("name")...),
		clitest.OnMasters(t, masters, "init"),
		clitest.New(t, "init", "--nodes", twice),
	} {
		c.Begin().WantExit(cli.ExitConfig)
	}
}
