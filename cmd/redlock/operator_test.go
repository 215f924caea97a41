package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Clients with a list of three of five masters are refused: doctor and status say so, and unlock
// before it deletes anything there.
func TestReal_doctor_status_and_unlock_notice_another_group(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)

	three := masters[:3]
	clitest.OnMasters(t, three, "run", "--node-timeout", "900ms", "name", "--", "true").Begin().WantExit(cli.ExitConfig)
	c := clitest.OnMasters(t, three, "doctor", "--node-timeout", "10s")
	c.Begin().WantExit(exitCritical)
	c.WantStdout("its clients have 5", "this one has 3", "--group", "--regroup")
	clitest.WantColumns(t, c.Out.String(), 80)

	status := clitest.OnMasters(t, three, "status", "--node-timeout", "900ms", "name")
	status.Begin().WantExit(exitFree)
	status.WantStdout("warning: a master belongs to another group", "this one")
	clitest.WantColumns(t, status.Out.String(), 80)
	asJSON := clitest.OnMasters(t, three, "status", "--json", "--node-timeout", "900ms", "name")
	asJSON.Begin().WantExit(exitFree)
	asJSON.WantStdout(`"other_group": "belongs to another group`)

	list := clitest.OnMasters(t, three, "status", "--node-timeout", "900ms")
	list.Begin().WantExit(0)
	list.WantStdout("no lock is held", "warning: a master belongs to another group")
	clitest.WantColumns(t, list.Out.String(), 80)

	unlock := clitest.OnMasters(t, three, "unlock", "--force", "--node-timeout", "900ms", "name")
	unlock.Begin().WantExit(cli.ExitUsage)
	unlock.WantStdout("warning: a master belongs to another group", "this one")
	unlock.WantStderr("needs --yes")
	clitest.WantColumns(t, unlock.Out.String(), 80)

	whole := clitest.OnMasters(t, masters, "doctor", "--node-timeout", "10s")
	whole.Begin().WantExit(0)
}

func TestReal_every_command_takes_the_name_of_the_group(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.OnMasters(t, masters, "init", "--group", "orders").Begin().WantExit(0)
	for _, test := range []struct {
		args        []string
		code, other int // with the name, and with another
	}{
		{[]string{"run", "--node-timeout", "900ms", "name", "--", "true"}, 0, cli.ExitConfig},
		{[]string{"elect", "--node-timeout", "900ms", "name", "--", "true"}, 0, cli.ExitConfig},
		{[]string{"doctor", "--node-timeout", "10s"}, 0, exitCritical},
		{[]string{"status", "--node-timeout", "900ms", "name"}, exitFree, exitFree},
		{[]string{"unlock", "--force", "--yes", "--node-timeout", "900ms", "name"}, -1, -1},
	} {
		right := clitest.OnMasters(t, masters, append(test.args[:1:1], append([]string{"--group", "orders"}, test.args[1:]...)...)...).Begin()
		if got := right.End(); test.code >= 0 && got != test.code {
			t.Errorf("%q: exit code %d, want %d\n%s%s", right.Args, got, test.code, &right.Out, &right.Errors)
		}
		wrong := clitest.OnMasters(t, masters, append(test.args[:1:1], append([]string{"--group", "billing"}, test.args[1:]...)...)...).Begin()
		if got := wrong.End(); test.other >= 0 && got != test.other {
			t.Errorf("%q: exit code %d, want %d\n%s%s", wrong.Args, got, test.other, &wrong.Out, &wrong.Errors)
		}
	}
}

// A master that does not let its marker be read looks as if it had lost its memory; one that
// does not let it be written, as a master after Init that no client has used yet, sits out
// a quarantine without an end.
func TestReal_run_names_the_rights_that_are_missing(t *testing.T) {
	t.Parallel()
	for rights, says := range map[string]string{"-eval -evalsha -script": "EVALSHA", "-get": "GET", "-time": "TIME", "-set": "SET"} {
		masters := redistest.StartN(t, 3)
		clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
		for _, s := range masters {
			command := []string{"ACL", "SETUSER", "ann", "reset", "on", ">secret", "~*", "&*", "+@all"}
			if _, err := s.Do(command[0], anys(append(command[1:], strings.Fields(rights)...))...); err != nil {
				t.Fatal(err)
			}
		}
		for _, command := range []string{"run", "run --wait 2s", "run --wait forever", "elect"} {
			args := append(strings.Fields(command), "--user", "ann", "--password-file", "password", "--node-timeout", "900ms", "name", "--", "true")
			c := clitest.OnMasters(t, masters, args...)
			c.Write("password", "secret")
			c.Begin().WantExit(cli.ExitConfig)
			c.WantStderr("the masters refuse", says, "(NOPERM)", "docs/permissions.md")
		}
	}
}

func anys(all []string) (args []any) {
	for _, s := range all {
		args = append(args, s)
	}
	return args
}

func TestDoctor_says_what_to_do_about_a_master_that_cannot_be_asked(t *testing.T) {
	said := map[string]bool{}
	for _, failure := range []string{
		"dial tcp 127.0.0.1:1: connect: connection refused",
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"not connected: not a master: its role is slave",
		"dial tcp: lookup redis-z: no such host",
		"dial tcp 10.0.0.9:6379: i/o timeout",
		"LOADING Redis is loading the dataset in memory",
		"tls: failed to verify certificate: x509: unknown authority",
	} {
		do := remedy(failure)
		if said[do] || strings.Contains(do, "Look at the server and its log") {
			t.Errorf("%s: %q is no advice of its own", failure, do)
		}
		said[do] = true
	}
}

func TestReal_doctor_tells_a_replica_from_a_server_that_is_down(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	host, port, _ := strings.Cut(masters[0].Addr(), ":")
	if _, err := masters[1].Do("REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	masters[2].Kill()
	c := clitest.OnMasters(t, masters, "doctor", "--node-timeout", "10s")
	c.Begin().WantExit(exitCritical)
	c.WantStdout("REPLICAOF NO ONE", "No server listens there")
}

func TestA_misspelt_flag_is_named(t *testing.T) {
	t.Parallel()
	for flag, meant := range map[string]string{"--nodse": "--nodes", "--ttll": "--ttl", "--restart-gaurd": "--restart-guard"} {
		c := clitest.New(t, "run", flag, "x", "name", "--", "true")
		c.Begin().WantExit(cli.ExitUsage)
		c.WantStderr("unknown flag: "+flag, "did you mean "+meant+"?")
	}
	c := clitest.New(t, "run", "--colour", "name", "--", "true")
	c.Begin().WantExit(cli.ExitUsage)
	if strings.Contains(c.Errors.String(), "did you mean") {
		t.Errorf("a flag that resembles none: %s", &c.Errors)
	}
}

func TestReal_observe_says_when_nobody_leads(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, asJSON := range []bool{false, true} {
		args := []string{"observe", "--node-timeout", "900ms", "boss"}
		if asJSON {
			args = append(args, "--json")
		}
		watch := clitest.OnMasters(t, masters, args...)
		lines := bufio.NewScanner(watch.Pipe())
		watch.Begin()
		token := func() uint64 {
			t.Helper()
			if !lines.Scan() {
				t.Fatalf("observe ended: %s", &watch.Errors)
			}
			if !asJSON {
				if lines.Text() == "nobody leads" {
					return 0
				}
				return 1
			}
			var l leaderStatus
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			return l.Token
		}
		if got := token(); got != 0 {
			t.Errorf("nobody leads, and observe shows the token %d", got)
		}
		leader := clitest.OnMasters(t, masters, append([]string{"elect", "--restart-guard", "0", "--node-timeout", "900ms", "boss"}, clitest.Sh("read x")...)...)
		stdin, err := leader.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		leader.Begin()
		if got := token(); got == 0 {
			t.Error("the leader is not shown")
		}
		stdin.Close()
		leader.End()
		if got := token(); got != 0 {
			t.Errorf("the leader has resigned, and observe shows the token %d", got)
		}
		watch.Signal(syscall.SIGINT)
		watch.WantExit(0)
	}
}

// A mutex does not see readers and permits, nor a semaphore a mutex.
func TestReal_run_warns_where_the_name_is_held_as_another_kind(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, test := range []struct {
		held, ours []string
		says       string
	}{
		{[]string{"--shared"}, nil, "a read-write lock by 1 reader"},
		{[]string{"-n", "2", "--of", "3"}, nil, "a semaphore, with 2 permits taken"},
		{[]string{"-n", "1", "--of", "3"}, []string{"--write"}, "a semaphore, with 1 permit taken"},
		{nil, []string{"--of", "3"}, "a mutex or a writer"},
		{[]string{"--shared"}, []string{"--shared"}, ""},
		{[]string{"--of", "3"}, []string{"--of", "3"}, ""},
	} {
		name := strings.Join(append(append([]string{"lock"}, test.held...), test.ours...), "")
		held := append([]string{"--ttl", "10m"}, test.held...) // so that no renewal finds the other kind there
		first := clitest.RunOn(t, masters, append(append(held, name), clitest.Sh("echo yes >started; read x; true")...)...)
		stdin, err := first.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		first.Begin().Content("started")
		second := clitest.RunOn(t, masters, append(append(test.ours, name), "--", "true")...)
		second.Begin().WantExit(0)
		if said := second.Errors.String(); test.says == "" && said != "" || !strings.Contains(said, test.says) {
			t.Errorf("%v beside %v: run says %q, want %q", test.ours, test.held, said, test.says)
		}
		stdin.Close()
		first.WantExit(0)
	}
}
