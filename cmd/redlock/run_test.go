package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestRun_passes_the_exit_code_on(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 7":        7,
		"kill -TERM $$": 128 + 15,
		"kill -KILL $$": 128 + 9,
	} {
		c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh(script)...)...)
		c.Begin().WantExit(want)
		clitest.WantFree(t, masters, "name")
	}
}

func TestReal_S56_arguments_environment_and_descriptors_reach_the_command_unchanged(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, test := range [][]string{
		{"run", "--restart-guard", "0", "--node-timeout", "900ms", "name"},
		{"elect", "--restart-guard", "0", "--node-timeout", "900ms", "name"},
	} {
		t.Run(test[0], func(t *testing.T) {
			// What JSON makes of the first name is the second.
			const meant, other = "old-\xe9.log", "old-\ufffd.log"
			script := `IFS= read -r x <&3; printf '%s\n' "$x" "$VARIABLE" >&4; rm "$1"; echo yes >done`
			c := clitest.OnMasters(t, masters, append(test, "--", "sh", "-c", script, "sh", meant, "--nodes", "")...)
			c.Env = append(c.Env, "VARIABLE=v-\xff\xfe")
			for _, name := range []string{meant, other} {
				if err := os.WriteFile(c.File(name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tokens, jobs := pipe(t)
			answer, answers := pipe(t)
			c.ExtraFiles = []*os.File{tokens, answers} // 3 and 4, as those of a make that runs us
			if _, err := jobs.WriteString("token\n"); err != nil {
				t.Fatal(err)
			}
			c.Begin().WantExit(0)

			answers.Close()
			if got, err := io.ReadAll(answer); err != nil || string(got) != "token\nv-\xff\xfe\n" {
				t.Errorf("descriptor 4 got %q (%v)", got, err)
			}
			if _, err := os.Stat(c.File(meant)); err == nil {
				t.Error("the file was not removed")
			}
			if _, err := os.Stat(c.File(other)); err != nil {
				t.Error("another file was removed")
			}
		})
	}
}

// pipe returns the ends of a pipe, which are closed when the test ends.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestRun_holds_the_lock_while_the_command_runs(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	c := clitest.RunOn(t, masters, append([]string{"--metadata", "nightly run", "a name"}, clitest.Sh(`echo "$REDLOCK_NAME|$REDLOCK_VALUE" >env; read x`)...)...)
	c.Env = append(c.Env, "REDLOCK_NAME=stale", "REDLOCK_VALUE=stale")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Begin()

	name, value, _ := strings.Cut(c.Content("env"), "|")
	if name != "a name" || !strings.HasSuffix(value, " nightly run") {
		t.Errorf("the command got the name %q and the value %q", name, value)
	}
	if got := clitest.Holders(t, masters, "a name"); !slices.Equal(got, []string{value, value, value, value, value}) {
		t.Errorf("the masters store %q, want the value %q everywhere", got, value)
	}

	second := clitest.RunOn(t, masters, append([]string{"a name"}, clitest.Sh("echo yes >ran")...)...)
	second.Begin().WantExit(cli.ExitBusy)
	second.WantStderr(`"a name"`, "taken", "nightly run", strconv.Itoa(c.Process.Pid))

	third := clitest.RunOn(t, masters, append([]string{"--wait", "5s", "a name"}, clitest.Sh("echo yes >ran")...)...)
	third.Begin().WantExit(cli.ExitBusy)

	stdin.Close() // ends read, with exit code 1
	c.WantExit(1)
	clitest.WantFree(t, masters, "a name")
	for _, loser := range []*clitest.Command{second, third} {
		if _, err := os.Stat(loser.File("ran")); err == nil {
			t.Error("a command ran without having the lock")
		}
	}
}

func TestRun_waits_for_its_turn(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"1m", "forever"} {
		t.Run(wait, func(t *testing.T) {
			masters := redistest.StartN(t, 3)
			first := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >started; read x")...)...)
			stdin, err := first.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			first.Begin().Content("started")
			second := clitest.RunOn(t, masters, append([]string{"--wait", wait, "name"}, clitest.Sh("echo yes >ran")...)...).Begin()
			second.Until("the second is subscribed to releases", func() bool { return someoneListens(t, masters) })

			stdin.Close()

			first.WantExit(1)
			second.WantExit(0)
			second.Content("ran")
			clitest.WantFree(t, masters, "name")
		})
	}
}

// someoneListens reports whether anybody waits for a release, at any master.
func someoneListens(t *testing.T, masters []*redistest.Server) bool {
	t.Helper()
	for _, s := range masters {
		channels, err := s.Do("PUBSUB", "CHANNELS")
		if err != nil {
			t.Fatal(err)
		}
		if len(channels.([]any)) > 0 {
			return true
		}
	}
	return false
}

func TestA_signal_ends_the_waiting(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	first := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >started; exec sleep 60")...)...).Begin()
	first.Content("started")
	before := clitest.Holders(t, masters, "name")
	second := clitest.RunOn(t, masters, append([]string{"--wait", "forever", "name"}, clitest.Sh("echo yes >ran")...)...).Begin()
	second.Until("the second is subscribed to releases", func() bool { return someoneListens(t, masters) })

	second.Signal(syscall.SIGINT)

	second.WantExit(128 + 2)
	if got := clitest.Holders(t, masters, "name"); !slices.Equal(got, before) {
		t.Errorf("the masters store %q, want %q: the first one's", got, before)
	}
}

func TestRun_tells_broken_from_busy(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	masters[0].Kill()
	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("exit 0")...)...)
	c.Begin().WantExit(0)

	masters[1].Kill()
	c = clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >ran")...)...)
	c.Begin().WantExit(cli.ExitNoQuorum)
	c.WantStderr("no quorum", masters[0].Addr(), masters[1].Addr())
	if _, err := os.Stat(c.File("ran")); err == nil {
		t.Error("the command ran without a quorum")
	}
}

func TestRun_waits_for_masters_that_are_down(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	masters[0].Kill()
	masters[1].Kill()
	c := clitest.RunOn(t, masters, append([]string{"--wait", "1m", "name"}, clitest.Sh("exit 4")...)...)
	stderr, err := os.Create(c.File("stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c.Stderr = stderr
	c.Begin()
	c.Until("it says that there is no quorum and that it tries again", func() bool {
		said := c.Content("stderr")
		return strings.Contains(said, "no quorum") && strings.Contains(said, "trying again")
	})
	masters[0].Restart()
	c.WantExit(4)
}

func TestRun_without_masters_says_how_to_give_them(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, append([]string{"run", "name"}, clitest.Sh("echo yes >ran")...)...)
	c.Begin().WantExit(cli.ExitUsage)
	c.WantStderr("--nodes", "REDLOCK_NODES", "redlab demo")
}

func TestRun_takes_masters_from_the_flag_before_the_environment(t *testing.T) {
	t.Parallel()
	masters, others := redistest.StartN(t, 3), redistest.StartN(t, 3)
	var nodes []string
	for _, s := range masters {
		nodes = append(nodes, s.URL())
	}
	c := clitest.RunOn(t, others, append([]string{"--nodes", strings.Join(nodes, ", "), "name"}, clitest.Sh("echo yes >started; read x")...)...)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Begin().Content("started")
	defer stdin.Close()
	if got := clitest.Holders(t, masters, "name"); slices.Contains(got, "") {
		t.Errorf("the masters of the flag store %q, want a value on each", got)
	}
	clitest.WantFree(t, others, "name")
}

func TestBad_usage_is_refused_before_anything_is_written(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	long := strings.Repeat("x", 1025)
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"run"}, cli.ExitUsage, []string{"name of the lock", "--"}},
		{[]string{"run", "--", "true"}, cli.ExitUsage, []string{"name of the lock"}},
		{[]string{"run", "name"}, cli.ExitUsage, []string{"--"}},
		{[]string{"run", "name", "true"}, cli.ExitUsage, []string{"put -- between"}},
		{[]string{"run", "name", "--"}, cli.ExitUsage, []string{"command is missing"}},
		{[]string{"run", "one", "two", "--", "true"}, cli.ExitUsage, []string{"put -- between"}},
		{[]string{"run", "", "--", "true"}, cli.ExitUsage, []string{"name", "empty"}},
		{[]string{"run", "redlock:name", "--", "true"}, cli.ExitUsage, []string{"redlock:name", "must not begin"}},
		{[]string{"run", "--ttl", "999ms", "name", "--", "true"}, cli.ExitUsage, []string{"--ttl 999ms", "at least 1s"}},
		{[]string{"run", "--ttl", "soon", "name", "--", "true"}, cli.ExitUsage, []string{"--ttl", "soon"}},
		{[]string{"run", "--ttl", "1m", "--restart-guard", "30s", "name", "--", "true"}, cli.ExitUsage, []string{"--restart-guard 30s", "1m0s"}},
		{[]string{"run", "--restart-guard", "-1s", "name", "--", "true"}, cli.ExitUsage, []string{"--restart-guard", "-1s"}},
		{[]string{"run", "--grace", "16s", "name", "--", "true"}, cli.ExitUsage, []string{"--grace 16s", "15s"}},
		{[]string{"run", "--grace", "-1s", "name", "--", "true"}, cli.ExitUsage, []string{"--grace -1s", "from 0"}},
		{[]string{"run", "--wait", "-1s", "name", "--", "true"}, cli.ExitUsage, []string{"--wait", "forever"}},
		{[]string{"run", "--wait", "later", "name", "--", "true"}, cli.ExitUsage, []string{"--wait", "forever"}},
		{[]string{"run", "--node-timeout", "0s", "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"run", "--metadata", long, "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --metadata: 1025 bytes: must be at most 1024"}},
		{[]string{"run", "--nodes", "127.0.0.1:none", "name", "--", "true"}, cli.ExitUsage, []string{"127.0.0.1:***", "port"}},
		{[]string{"run", "--color", "name", "--", "true"}, cli.ExitUsage, []string{"--color"}},
		{[]string{"run", "name", "--", "./no-such-command"}, cli.ExitNotFound, []string{"no-such-command"}},
		{[]string{"run", "name", "--", "/"}, cli.ExitNotRun, []string{"/"}},
		{[]string{"status", "one", "two"}, cli.ExitUsage, []string{"arg"}},
		{[]string{"status", "--limit", "0"}, cli.ExitUsage, []string{"--limit 0", "at least 1"}},
		{[]string{"status", ""}, cli.ExitUsage, []string{"name", "empty"}},
		{[]string{"unlock", "name"}, cli.ExitUsage, []string{"--force"}},
		{[]string{"unlock", "--force", "name"}, cli.ExitUsage, []string{"--yes"}},
		{[]string{"unlock", "--force", "--yes", ""}, cli.ExitUsage, []string{"name", "empty"}},
		{[]string{"run", "--hold", "name", "--", "true"}, cli.ExitUsage, []string{"--hold", "no command"}},
		{[]string{"run", "--hold"}, cli.ExitUsage, []string{"--hold", "name of the lock"}},
		{[]string{"run", "--conflict-exit-code", "256", "name", "--", "true"}, cli.ExitUsage, []string{"256", "0 to 255"}},
		{[]string{"run", "--user", "ann", "name", "--", "true"}, cli.ExitUsage, []string{"--user ann", "--password-file"}},
		{[]string{"run", "--password-file", "/none", "--password-command", "true", "name", "--", "true"}, cli.ExitUsage, []string{"--password-file and --password-command"}},
		{[]string{"run", "--password-file", "/none", "name", "--", "true"}, cli.ExitUsage, []string{"--password-file", "/none"}},
		{[]string{"run", "--password-file", "/dev/null", "name", "--", "true"}, cli.ExitUsage, []string{"--password-file", "empty"}},
		{[]string{"run", "--tls-ca", "/none", "name", "--", "true"}, cli.ExitUsage, []string{"--tls-ca", "rediss://"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-ca", "/none", "name", "--", "true"}, cli.ExitUsage, []string{"--tls-ca", "/none"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-ca", "/dev/null", "name", "--", "true"}, cli.ExitUsage, []string{"--tls-ca", "no certificate"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-key", "/none", "name", "--", "true"}, cli.ExitUsage, []string{"--tls-key", "together"}},
		{[]string{"run", "--config", "/none", "name", "--", "true"}, cli.ExitUsage, []string{"configuration", "/none"}},
		{[]string{"run", "--shared", "--write", "name", "--", "true"}, cli.ExitUsage, []string{"--shared and --write"}},
		{[]string{"run", "--shared", "--fenced", "name", "--", "true"}, cli.ExitUsage, []string{"--shared and --fenced"}},
		{[]string{"run", "--write", "--fair", "name", "--", "true"}, cli.ExitUsage, []string{"--write and --fair"}},
		{[]string{"run", "--shared", "-n", "1", "--of", "2", "name", "--", "true"}, cli.ExitUsage, []string{"--shared and --permits"}},
		{[]string{"run", "--of", "2", "--fair", "name", "--", "true"}, cli.ExitUsage, []string{"--of and --fair"}},
		{[]string{"run", "-n", "2", "name", "--", "true"}, cli.ExitUsage, []string{"--permits 2", "--of"}},
		{[]string{"run", "-n", "3", "--of", "2", "name", "--", "true"}, cli.ExitUsage, []string{"--permits 3", "from 1 to 2"}},
		{[]string{"run", "--of", "0", "name", "--", "true"}, cli.ExitUsage, []string{"--of 0", "from 1 to"}},
		{[]string{"run", "--token-env", "T", "name", "--", "true"}, cli.ExitUsage, []string{"--token-env T", "--fenced"}},
		{[]string{"run", "--fenced", "--token-env", "a b", "name", "--", "true"}, cli.ExitUsage, []string{`--token-env "a b"`, "letters"}},
		{[]string{"elect", "--", "true"}, cli.ExitUsage, []string{"name of the election"}},
		{[]string{"elect", "name"}, cli.ExitUsage, []string{"command is missing"}},
		{[]string{"elect", "--value", long, "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --value: 1025 bytes: must be at most 1024"}},
		{[]string{"run", "--ttl", "1000000h", "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --ttl 1000000h0m0s: must be at most 8640h0m0s"}},
		{[]string{"run", "--restart-guard", "1000000h", "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --restart-guard 1000000h0m0s: must be"}},
		{[]string{"run", "--node-timeout", "2m", "name", "--", "true"}, cli.ExitUsage, []string{"redlock: --node-timeout 2m0s: must be less than the TTL"}},
		{[]string{"run", "--of", "4.5", "name", "--", "true"}, cli.ExitUsage, []string{`redlock: --of "4.5": must be a whole number (see`}},
		{[]string{"run", "--conflict-exit-code", "abc", "name", "--", "true"}, cli.ExitUsage, []string{`--conflict-exit-code "abc": must be a whole number`}},
		{[]string{"status", "--node-timeout", "0"}, cli.ExitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"status", "--node-timeout", "0", "name"}, cli.ExitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"init", "--regroup", "--guard", "0"}, cli.ExitUsage, []string{"redlock: --guard 0s: must be"}},
		{[]string{"init", "--regroup", "--guard", "40ms"}, cli.ExitUsage, []string{"redlock: --guard 40ms: must be more than --node-timeout, 900ms"}},
		{[]string{"init", "--group", "a b"}, cli.ExitUsage, []string{"redlock: --group: group name", "visible ASCII"}},
		{[]string{"unlock", "--force"}, cli.ExitUsage, []string{"the name of the lock is missing: redlock unlock --force|--ask NAME"}},
		{[]string{"observe"}, cli.ExitUsage, []string{"the name of the election is missing"}},
		{[]string{"elect", "--token-env", "REDLOCK_NAME", "name", "--", "true"}, cli.ExitUsage, []string{"--token-env", "REDLOCK_NAME"}},
		{[]string{"elect", "name", "--", "./no-such-command"}, cli.ExitNotFound, []string{"no-such-command"}},
		{[]string{"observe", ""}, cli.ExitUsage, []string{"name", "empty"}},
	} {
		c := clitest.OnMasters(t, masters, test.args...)
		if got := c.Begin().End(); got != test.code {
			t.Errorf("%q: exit code %d, want %d", test.args, got, test.code)
		}
		c.WantStderr(test.says...)
		if n := strings.Count(c.Errors.String(), "\n"); n != 1 {
			t.Errorf("%q: %d lines, want one:\n%s", test.args, n, &c.Errors)
		}
	}
	for _, s := range masters {
		if n, err := s.Do("DBSIZE"); err != nil || n != int64(0) {
			t.Errorf("%s has %v keys (%v), want none", s.Addr(), n, err)
		}
	}
}

func TestRun_forwards_signals_to_the_whole_group(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, sig := range []string{"HUP", "INT", "QUIT", "TERM", "USR1", "USR2"} {
		t.Run(sig, func(t *testing.T) {
			// A shell starts background jobs with INT and QUIT ignored, for good; so
			// the inner shell runs in the foreground. It is a subshell, and it waits,
			// because dash loses a signal that comes while it starts a program.
			t.Parallel()
			inner := fmt.Sprintf(`trap "echo >inner; exit 3" %s; sleep 60 & echo yes >started; wait`, sig)
			outer := fmt.Sprintf(`trap "echo >outer" %s; (%s); exit $?`, sig, inner)
			c := clitest.RunOn(t, masters, append([]string{"lock " + sig}, clitest.Sh(outer)...)...).Begin()
			c.Content("started")

			c.Signal(signalNumbers[sig])

			c.WantExit(3)
			for _, file := range []string{"inner", "outer"} {
				if _, err := os.Stat(c.File(file)); err != nil {
					t.Errorf("SIG%s did not reach the %s process", sig, file)
				}
			}
			clitest.WantFree(t, masters, "lock "+sig)
		})
	}
}

var signalNumbers = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func TestThe_lock_is_released_when_the_wrapper_is_terminated(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >started; exec sleep 60")...)...).Begin()
	c.Content("started")

	c.Signal(syscall.SIGTERM)

	c.WantExit(128 + 15)
	clitest.WantFree(t, masters, "name")
}

// What is left of the command when it has ended would go on without the lock.
func TestLeftovers_of_the_command_end_before_the_lock_is_released(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"},
		clitest.Sh(`sh -c 'trap "" HUP; trap "redis-cli -p $PORT GET name >held; exit" TERM; echo $$ >pid; sleep 60 & wait' & while ! [ -s pid ]; do sleep 0.01; done; exit 5`)...)...)
	_, port, _ := strings.Cut(masters[0].Addr(), ":")
	c.Env = append(c.Env, "PORT="+port)
	c.Begin().WantExit(5)

	pid, err := strconv.Atoi(c.Content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if clitest.Exists(pid) {
		t.Errorf("process %d is still there", pid)
	}
	if held := c.Content("held"); !strings.Contains(held, strconv.Itoa(c.Process.Pid)) {
		t.Errorf("the lock's value was %q when the last process of the group ended, want the wrapper's", held)
	}
	clitest.WantFree(t, masters, "name")
}

func TestA_killed_wrapper_takes_the_command_with_it(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, "name", "--", "sh", "-c", "echo $$ >pid; exec sleep 60").Begin()
	pid, err := strconv.Atoi(c.Content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	c.Signal(syscall.SIGKILL)
	c.End()
	c.Until("the command is gone", func() bool { return !clitest.Exists(pid) })
}

// The masters hang, so the lease cannot be renewed. Before its keys have ended
// on a majority of them, when anybody else could have the lock, nothing of the
// group is left.
func TestOn_loss_the_whole_group_is_dead_before_anybody_else_can_have_the_lock(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 5)
	c := clitest.RunOn(t, masters, append([]string{"--ttl", "10s", "name"}, deaf(t)...)...).Begin()
	c.Content("beat.inner")
	c.Content("beat.outer")

	free := renewal(c, masters, "name")
	stopAll(masters)
	c.WantExit(cli.ExitLost)

	c.WantStderr(`"name"`, "SIGTERM", "SIGKILL")
	term := latest(c, "term.inner", "term.outer")
	beat := latest(c, "beat.inner", "beat.outer")
	if !term.Before(beat) {
		t.Errorf("SIGTERM at %v, want it while both were alive, until %v", term, beat)
	}
	if !beat.Before(free) {
		t.Errorf("the group was alive until %v, want before %v", beat, free)
	}
	t.Logf("before the lock could go to somebody else: SIGTERM %v, the last sign of life %v", free.Sub(term), free.Sub(beat))
}

// renewal waits until the lease is renewed everywhere, and returns when its keys
// will have ended on so many masters that the others are no quorum, unless it is
// renewed again.
func renewal(c *clitest.Command, masters []*redistest.Server, name string) time.Time {
	c.T.Helper()
	ends := func() []time.Time {
		all := make([]time.Time, len(masters))
		for i, s := range masters {
			all[i] = s.ExpiryOf(name)
		}
		return all
	}
	before := ends()
	now := before
	c.Until("the lease is renewed everywhere", func() bool {
		now = ends()
		for i := range now {
			if now[i].Sub(before[i]) < 100*time.Millisecond { // it is known to a few milliseconds
				return false
			}
		}
		return true
	})
	slices.SortFunc(now, time.Time.Compare)
	return now[len(now)/2]
}

func stopAll(masters []*redistest.Server) {
	for _, s := range masters {
		s.Stop()
	}
}

func TestOn_loss_a_command_that_ends_at_SIGTERM_is_not_killed(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"--ttl", "10s", "name"},
		clitest.Sh(`trap "echo tidied up >term; exit 0" TERM; sleep 60 & echo yes >started; wait`)...)...).Begin()
	c.Content("started")

	free := renewal(c, masters, "name")
	stopAll(masters)
	c.WantExit(cli.ExitLost)

	c.Content("term")
	tidied, err := os.Stat(c.File("term"))
	if err != nil || !tidied.ModTime().Before(free) {
		t.Errorf("the command ended too late (%v)", err)
	}
	c.WantStderr("SIGTERM")
	if strings.Contains(c.Errors.String(), "SIGKILL") {
		t.Errorf("a command that ended by itself was killed:\n%s", &c.Errors)
	}
}

// The keys are gone from a majority: somebody else may have the lock already.
func TestA_lock_that_is_found_lost_kills_the_group_at_once(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"--ttl", "10s", "name"}, deaf(t)...)...).Begin()
	c.Content("beat.inner")
	free := renewal(c, masters, "name")
	for _, s := range masters[:2] {
		if _, err := s.Do("DEL", "name"); err != nil {
			t.Fatal(err)
		}
	}
	c.WantExit(cli.ExitLost)

	c.WantStderr("lost", "SIGKILL")
	// The next renewal finds the loss. SIGTERM comes long after that, when grace of
	// the validity is left.
	for _, file := range []string{"term.inner", "term.outer"} {
		if _, err := os.Stat(c.File(file)); err == nil {
			t.Errorf("the group got SIGTERM: it lived on until the validity was nearly over")
		}
	}
	if beat := latest(c, "beat.inner", "beat.outer"); !beat.Before(free) {
		t.Errorf("the group was alive until %v, want before %v", beat, free)
	}
	clitest.WantFree(t, masters, "name")
}

func TestA_short_outage_of_all_masters_does_not_disturb_the_command(t *testing.T) {
	t.Parallel()
	const ttl = 9 * time.Second
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"--ttl", ttl.String(), "--grace", "500ms", "name"}, clitest.Sh("echo yes >started; read x; exit 9")...)...)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Begin().Content("started")

	end := renewal(c, masters, "name")
	stopAll(masters)
	time.Sleep(time.Until(end.Add(-ttl / 2))) // the outage: renewals fail, and it is long until SIGTERM
	for _, s := range masters {
		s.Continue()
	}

	if again := renewal(c, masters, "name"); !again.After(end) {
		t.Errorf("renewed until %v, want after %v", again, end)
	}
	stdin.Close()
	c.WantExit(9)
	clitest.WantFree(t, masters, "name")
}

// The masters do not answer for so long that half of the validity passes, and then they do.
func TestRun_warns_the_command_while_the_lock_may_still_be_renewed(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"--ttl", "9s", "--warn-signal", "usr1", "name"},
		clitest.Sh(`trap "echo yes >warned" USR1; echo yes >started; while test ! -e end; do sleep 0.05; done; exit 9`)...)...).Begin()
	c.Content("started")
	renewal(c, masters, "name")

	stopAll(masters)
	c.Content("warned")
	for _, s := range masters {
		s.Continue()
	}

	renewal(c, masters, "name")
	if err := os.WriteFile(c.File("end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.WantExit(9)
	c.WantStderr(`lock "name": not renewed for half of its validity: sending SIGUSR1`)
	if strings.Contains(c.Errors.String(), "SIGTERM") {
		t.Errorf("the command got SIGTERM as well:\n%s", &c.Errors)
	}
	clitest.WantFree(t, masters, "name")
}
