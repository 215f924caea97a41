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

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// runOn prepares redlock run on masters that were started a moment ago: with
// the restart guard, they could not vote yet. The tests are not about how busy
// the machine is.
func runOn(t *testing.T, masters []*redistest.Server, args ...string) *command {
	t.Helper()
	return onMasters(t, masters, append([]string{"run", "--restart-guard", "0", "--node-timeout", "900ms"}, args...)...)
}

// sh ends the arguments of redlock run with a shell script.
func sh(script string) []string { return []string{"--", "sh", "-c", script} }

func TestRunPassesTheExitCodeOn(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 7":        7,
		"kill -TERM $$": 128 + 15,
		"kill -KILL $$": 128 + 9,
	} {
		c := runOn(t, masters, append([]string{"name"}, sh(script)...)...)
		c.start().wantExit(want)
		wantFree(t, masters, "name")
	}
}

func TestReal_S56_arguments_environment_and_descriptors_reach_the_command_unchanged(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, test := range [][]string{
		{"run", "--restart-guard", "0", "--node-timeout", "900ms", "name"},
		{"elect", "--restart-guard", "0", "--node-timeout", "900ms", "name"},
	} {
		t.Run(test[0], func(t *testing.T) {
			// What JSON makes of the first name is the second.
			const meant, other = "old-\xe9.log", "old-\ufffd.log"
			script := `IFS= read -r x <&3; printf '%s\n' "$x" "$VARIABLE" >&4; rm "$1"; echo yes >done`
			c := onMasters(t, masters, append(test, "--", "sh", "-c", script, "sh", meant, "--nodes", "")...)
			c.Env = append(c.Env, "VARIABLE=v-\xff\xfe")
			for _, name := range []string{meant, other} {
				if err := os.WriteFile(c.file(name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tokens, jobs := pipe(t)
			answer, answers := pipe(t)
			c.ExtraFiles = []*os.File{tokens, answers} // 3 and 4, as those of a make that runs us
			if _, err := jobs.WriteString("token\n"); err != nil {
				t.Fatal(err)
			}
			c.start().wantExit(0)

			answers.Close()
			if got, err := io.ReadAll(answer); err != nil || string(got) != "token\nv-\xff\xfe\n" {
				t.Errorf("descriptor 4 got %q (%v)", got, err)
			}
			if _, err := os.Stat(c.file(meant)); err == nil {
				t.Error("the file was not removed")
			}
			if _, err := os.Stat(c.file(other)); err != nil {
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

func TestRunHoldsTheLockWhileTheCommandRuns(t *testing.T) {
	masters := redistest.StartN(t, 5)
	c := runOn(t, masters, append([]string{"--metadata", "nightly run", "a name"}, sh(`echo "$REDLOCK_NAME|$REDLOCK_VALUE" >env; read x`)...)...)
	c.Env = append(c.Env, "REDLOCK_NAME=stale", "REDLOCK_VALUE=stale")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.start()

	name, value, _ := strings.Cut(c.content("env"), "|")
	if name != "a name" || !strings.HasSuffix(value, " nightly run") {
		t.Errorf("the command got the name %q and the value %q", name, value)
	}
	if got := holders(t, masters, "a name"); !slices.Equal(got, []string{value, value, value, value, value}) {
		t.Errorf("the masters store %q, want the value %q everywhere", got, value)
	}

	second := runOn(t, masters, append([]string{"a name"}, sh("echo yes >ran")...)...)
	second.start().wantExit(exitBusy)
	second.wantStderr(`"a name"`, "taken", "nightly run", strconv.Itoa(c.Process.Pid))

	third := runOn(t, masters, append([]string{"--wait", "50ms", "a name"}, sh("echo yes >ran")...)...)
	third.start().wantExit(exitBusy)

	stdin.Close() // ends read, with exit code 1
	c.wantExit(1)
	wantFree(t, masters, "a name")
	for _, loser := range []*command{second, third} {
		if _, err := os.Stat(loser.file("ran")); err == nil {
			t.Error("a command ran without having the lock")
		}
	}
}

func TestRunWaitsForItsTurn(t *testing.T) {
	for _, wait := range []string{"1m", "forever"} {
		t.Run(wait, func(t *testing.T) {
			masters := redistest.StartN(t, 3)
			first := runOn(t, masters, append([]string{"name"}, sh("echo yes >started; read x")...)...)
			stdin, err := first.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			first.start().content("started")
			second := runOn(t, masters, append([]string{"--wait", wait, "name"}, sh("echo yes >ran")...)...).start()
			second.until("the second is subscribed to releases", func() bool { return someoneListens(t, masters) })

			stdin.Close()

			first.wantExit(1)
			second.wantExit(0)
			second.content("ran")
			wantFree(t, masters, "name")
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

func TestASignalEndsTheWaiting(t *testing.T) {
	masters := redistest.StartN(t, 3)
	first := runOn(t, masters, append([]string{"name"}, sh("echo yes >started; exec sleep 60")...)...).start()
	first.content("started")
	before := holders(t, masters, "name")
	second := runOn(t, masters, append([]string{"--wait", "forever", "name"}, sh("echo yes >ran")...)...).start()
	second.until("the second is subscribed to releases", func() bool { return someoneListens(t, masters) })

	second.signal(syscall.SIGINT)

	second.wantExit(128 + 2)
	if got := holders(t, masters, "name"); !slices.Equal(got, before) {
		t.Errorf("the masters store %q, want %q: the first one's", got, before)
	}
}

func TestRunTellsBrokenFromBusy(t *testing.T) {
	masters := redistest.StartN(t, 3)
	masters[0].Kill()
	c := runOn(t, masters, append([]string{"name"}, sh("exit 0")...)...)
	c.start().wantExit(0)

	masters[1].Kill()
	c = runOn(t, masters, append([]string{"name"}, sh("echo yes >ran")...)...)
	c.start().wantExit(exitNoQuorum)
	c.wantStderr("no quorum", masters[0].Addr(), masters[1].Addr())
	if _, err := os.Stat(c.file("ran")); err == nil {
		t.Error("the command ran without a quorum")
	}
}

func TestRunWaitsForMastersThatAreDown(t *testing.T) {
	masters := redistest.StartN(t, 3)
	masters[0].Kill()
	masters[1].Kill()
	c := runOn(t, masters, append([]string{"--wait", "1m", "name"}, sh("exit 4")...)...)
	stderr, err := os.Create(c.file("stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c.Stderr = stderr
	c.start()
	c.until("it says that there is no quorum and that it tries again", func() bool {
		said := c.content("stderr")
		return strings.Contains(said, "no quorum") && strings.Contains(said, "trying again")
	})
	masters[0].Restart()
	c.wantExit(4)
}

func TestRunWithoutMastersSaysHowToGiveThem(t *testing.T) {
	c := redlockCommand(t, append([]string{"run", "name"}, sh("echo yes >ran")...)...)
	c.start().wantExit(exitUsage)
	c.wantStderr("--nodes", "REDLOCK_NODES", "redlock demo")
}

func TestRunTakesMastersFromTheFlagBeforeTheEnvironment(t *testing.T) {
	masters, others := redistest.StartN(t, 3), redistest.StartN(t, 3)
	var nodes []string
	for _, s := range masters {
		nodes = append(nodes, s.URL())
	}
	c := runOn(t, others, append([]string{"--nodes", strings.Join(nodes, ", "), "name"}, sh("echo yes >started; read x")...)...)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.start().content("started")
	defer stdin.Close()
	if got := holders(t, masters, "name"); slices.Contains(got, "") {
		t.Errorf("the masters of the flag store %q, want a value on each", got)
	}
	wantFree(t, others, "name")
}

func TestBadUsageIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	masters := redistest.StartN(t, 3)
	long := strings.Repeat("x", 1025)
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"run"}, exitUsage, []string{"name of the lock", "--"}},
		{[]string{"run", "--", "true"}, exitUsage, []string{"name of the lock"}},
		{[]string{"run", "name"}, exitUsage, []string{"--"}},
		{[]string{"run", "name", "true"}, exitUsage, []string{"put -- between"}},
		{[]string{"run", "name", "--"}, exitUsage, []string{"command is missing"}},
		{[]string{"run", "one", "two", "--", "true"}, exitUsage, []string{"put -- between"}},
		{[]string{"run", "", "--", "true"}, exitUsage, []string{"name", "empty"}},
		{[]string{"run", "redlock:name", "--", "true"}, exitUsage, []string{"redlock:name", "must not begin"}},
		{[]string{"run", "--ttl", "999ms", "name", "--", "true"}, exitUsage, []string{"--ttl 999ms", "at least 1s"}},
		{[]string{"run", "--ttl", "soon", "name", "--", "true"}, exitUsage, []string{"--ttl", "soon"}},
		{[]string{"run", "--ttl", "1m", "--restart-guard", "30s", "name", "--", "true"}, exitUsage, []string{"--restart-guard 30s", "1m0s"}},
		{[]string{"run", "--restart-guard", "-1s", "name", "--", "true"}, exitUsage, []string{"--restart-guard", "-1s"}},
		{[]string{"run", "--grace", "16s", "name", "--", "true"}, exitUsage, []string{"--grace 16s", "15s"}},
		{[]string{"run", "--grace", "-1s", "name", "--", "true"}, exitUsage, []string{"--grace -1s", "from 0"}},
		{[]string{"run", "--wait", "-1s", "name", "--", "true"}, exitUsage, []string{"--wait", "forever"}},
		{[]string{"run", "--wait", "later", "name", "--", "true"}, exitUsage, []string{"--wait", "forever"}},
		{[]string{"run", "--node-timeout", "0s", "name", "--", "true"}, exitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"run", "--metadata", long, "name", "--", "true"}, exitUsage, []string{"redlock: --metadata: 1025 bytes: must be at most 1024"}},
		{[]string{"run", "--nodes", "127.0.0.1:none", "name", "--", "true"}, exitUsage, []string{"127.0.0.1:***", "port"}},
		{[]string{"run", "--color", "name", "--", "true"}, exitUsage, []string{"--color"}},
		{[]string{"run", "name", "--", "./no-such-command"}, exitNotFound, []string{"no-such-command"}},
		{[]string{"run", "name", "--", "/"}, exitNotRun, []string{"/"}},
		{[]string{"status", "one", "two"}, exitUsage, []string{"arg"}},
		{[]string{"status", "--limit", "0"}, exitUsage, []string{"--limit 0", "at least 1"}},
		{[]string{"status", ""}, exitUsage, []string{"name", "empty"}},
		{[]string{"demo", "--ttl", "1ms"}, exitUsage, []string{"--ttl", "1s to 1m"}},
		{[]string{"unlock", "name"}, exitUsage, []string{"--force"}},
		{[]string{"unlock", "--force", "name"}, exitUsage, []string{"--yes"}},
		{[]string{"unlock", "--force", "--yes", ""}, exitUsage, []string{"name", "empty"}},
		{[]string{"run", "--hold", "name", "--", "true"}, exitUsage, []string{"--hold", "no command"}},
		{[]string{"run", "--hold"}, exitUsage, []string{"--hold", "name of the lock"}},
		{[]string{"run", "--conflict-exit-code", "256", "name", "--", "true"}, exitUsage, []string{"256", "0 to 255"}},
		{[]string{"run", "--user", "ann", "name", "--", "true"}, exitUsage, []string{"--user ann", "--password-file"}},
		{[]string{"run", "--password-file", "/none", "name", "--", "true"}, exitUsage, []string{"--password-file", "/none"}},
		{[]string{"run", "--password-file", "/dev/null", "name", "--", "true"}, exitUsage, []string{"--password-file", "empty"}},
		{[]string{"run", "--tls-ca", "/none", "name", "--", "true"}, exitUsage, []string{"--tls-ca", "rediss://"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-ca", "/none", "name", "--", "true"}, exitUsage, []string{"--tls-ca", "/none"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-ca", "/dev/null", "name", "--", "true"}, exitUsage, []string{"--tls-ca", "no certificate"}},
		{[]string{"run", "--nodes", "rediss://a", "--tls-key", "/none", "name", "--", "true"}, exitUsage, []string{"--tls-key", "together"}},
		{[]string{"run", "--config", "/none", "name", "--", "true"}, exitUsage, []string{"configuration", "/none"}},
		{[]string{"run", "--shared", "--write", "name", "--", "true"}, exitUsage, []string{"--shared and --write"}},
		{[]string{"run", "--shared", "--fenced", "name", "--", "true"}, exitUsage, []string{"--shared and --fenced"}},
		{[]string{"run", "--write", "--fair", "name", "--", "true"}, exitUsage, []string{"--write and --fair"}},
		{[]string{"run", "--shared", "-n", "1", "--of", "2", "name", "--", "true"}, exitUsage, []string{"--shared and --permits"}},
		{[]string{"run", "--of", "2", "--fair", "name", "--", "true"}, exitUsage, []string{"--of and --fair"}},
		{[]string{"run", "-n", "2", "name", "--", "true"}, exitUsage, []string{"--permits 2", "--of"}},
		{[]string{"run", "-n", "3", "--of", "2", "name", "--", "true"}, exitUsage, []string{"--permits 3", "from 1 to 2"}},
		{[]string{"run", "--of", "0", "name", "--", "true"}, exitUsage, []string{"--of 0", "from 1 to"}},
		{[]string{"run", "--token-env", "T", "name", "--", "true"}, exitUsage, []string{"--token-env T", "--fenced"}},
		{[]string{"run", "--fenced", "--token-env", "a b", "name", "--", "true"}, exitUsage, []string{`--token-env "a b"`, "letters"}},
		{[]string{"elect", "--", "true"}, exitUsage, []string{"name of the election"}},
		{[]string{"elect", "name"}, exitUsage, []string{"command is missing"}},
		{[]string{"elect", "--value", long, "name", "--", "true"}, exitUsage, []string{"redlock: --value: 1025 bytes: must be at most 1024"}},
		{[]string{"run", "--ttl", "1000000h", "name", "--", "true"}, exitUsage, []string{"redlock: --ttl 1000000h0m0s: must be at most 8640h0m0s"}},
		{[]string{"run", "--restart-guard", "1000000h", "name", "--", "true"}, exitUsage, []string{"redlock: --restart-guard 1000000h0m0s: must be"}},
		{[]string{"run", "--node-timeout", "2m", "name", "--", "true"}, exitUsage, []string{"redlock: --node-timeout 2m0s: must be less than the TTL"}},
		{[]string{"run", "--of", "4.5", "name", "--", "true"}, exitUsage, []string{`redlock: --of "4.5": must be a whole number (see`}},
		{[]string{"run", "--conflict-exit-code", "abc", "name", "--", "true"}, exitUsage, []string{`--conflict-exit-code "abc": must be a whole number`}},
		{[]string{"simulate", "--seed", "-1"}, exitUsage, []string{`--seed "-1": must be a whole number that is not negative`}},
		{[]string{"simulate", "--nodes", "-1"}, exitUsage, []string{"redlock: --nodes -1: must be from 1 to 26"}},
		{[]string{"status", "--node-timeout", "0"}, exitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"status", "--node-timeout", "0", "name"}, exitUsage, []string{"redlock: --node-timeout 0s: must be at least 1ms"}},
		{[]string{"init", "--regroup", "--guard", "0"}, exitUsage, []string{"redlock: --guard 0s: must be"}},
		{[]string{"init", "--regroup", "--guard", "40ms"}, exitUsage, []string{"redlock: --guard 40ms: must be more than --node-timeout, 50ms"}},
		{[]string{"init", "--group", "a b"}, exitUsage, []string{"redlock: --group: group name", "visible ASCII"}},
		{[]string{"unlock", "--force"}, exitUsage, []string{"the name of the lock is missing: redlock unlock --force NAME"}},
		{[]string{"observe"}, exitUsage, []string{"the name of the election is missing"}},
		{[]string{"elect", "--token-env", "REDLOCK_NAME", "name", "--", "true"}, exitUsage, []string{"--token-env", "REDLOCK_NAME"}},
		{[]string{"elect", "name", "--", "./no-such-command"}, exitNotFound, []string{"no-such-command"}},
		{[]string{"observe", ""}, exitUsage, []string{"name", "empty"}},
		{[]string{"man"}, exitUsage, []string{"FOLDER is missing: redlock man FOLDER"}},
	} {
		c := onMasters(t, masters, test.args...)
		if got := c.start().end(); got != test.code {
			t.Errorf("%q: exit code %d, want %d", test.args, got, test.code)
		}
		c.wantStderr(test.says...)
		if n := strings.Count(c.stderr.String(), "\n"); n != 1 {
			t.Errorf("%q: %d lines, want one:\n%s", test.args, n, &c.stderr)
		}
	}
	for _, s := range masters {
		if n, err := s.Do("DBSIZE"); err != nil || n != int64(0) {
			t.Errorf("%s has %v keys (%v), want none", s.Addr(), n, err)
		}
	}
}

func TestRunForwardsSignalsToTheWholeGroup(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, sig := range []string{"HUP", "INT", "QUIT", "TERM", "USR1", "USR2"} {
		t.Run(sig, func(t *testing.T) {
			// A shell starts background jobs with INT and QUIT ignored, for good; so
			// the inner shell runs in the foreground. It is a subshell, and it waits,
			// because dash loses a signal that comes while it starts a program.
			t.Parallel()
			inner := fmt.Sprintf(`trap "echo >inner; exit 3" %s; sleep 60 & echo yes >started; wait`, sig)
			outer := fmt.Sprintf(`trap "echo >outer" %s; (%s); exit $?`, sig, inner)
			c := runOn(t, masters, append([]string{"lock " + sig}, sh(outer)...)...).start()
			c.content("started")

			c.signal(signalNumbers[sig])

			c.wantExit(3)
			for _, file := range []string{"inner", "outer"} {
				if _, err := os.Stat(c.file(file)); err != nil {
					t.Errorf("SIG%s did not reach the %s process", sig, file)
				}
			}
			wantFree(t, masters, "lock "+sig)
		})
	}
}

var signalNumbers = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func TestTheLockIsReleasedWhenTheWrapperIsTerminated(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"name"}, sh("echo yes >started; exec sleep 60")...)...).start()
	c.content("started")

	c.signal(syscall.SIGTERM)

	c.wantExit(128 + 15)
	wantFree(t, masters, "name")
}

// What is left of the command when it has ended would go on without the lock.
func TestLeftoversOfTheCommandEndBeforeTheLockIsReleased(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"name"},
		sh(`sh -c 'trap "" HUP; trap "redis-cli -p $PORT GET name >held; exit" TERM; echo $$ >pid; sleep 60 & wait' & while ! [ -s pid ]; do sleep 0.01; done; exit 5`)...)...)
	_, port, _ := strings.Cut(masters[0].Addr(), ":")
	c.Env = append(c.Env, "PORT="+port)
	c.start().wantExit(5)

	pid, err := strconv.Atoi(c.content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if exists(pid) {
		t.Errorf("process %d is still there", pid)
	}
	if held := c.content("held"); !strings.Contains(held, strconv.Itoa(c.Process.Pid)) {
		t.Errorf("the lock's value was %q when the last process of the group ended, want the wrapper's", held)
	}
	wantFree(t, masters, "name")
}

func TestAKilledWrapperTakesTheCommandWithIt(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, "name", "--", "sh", "-c", "echo $$ >pid; exec sleep 60").start()
	pid, err := strconv.Atoi(c.content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	c.signal(syscall.SIGKILL)
	c.end()
	c.until("the command is gone", func() bool { return !exists(pid) })
}

// The masters hang, so the lease cannot be renewed. Before its keys have ended
// on a majority of them, when anybody else could have the lock, nothing of the
// group is left.
func TestOnLossTheWholeGroupIsDeadBeforeAnybodyElseCanHaveTheLock(t *testing.T) {
	masters := redistest.StartN(t, 5)
	c := runOn(t, masters, append([]string{"--ttl", "4s", "name"}, deaf(t)...)...).start()
	c.content("beat.inner")
	c.content("beat.outer")

	free := renewal(c, masters, "name")
	stopAll(masters)
	c.wantExit(exitLost)

	c.wantStderr(`"name"`, "SIGTERM", "SIGKILL")
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
func renewal(c *command, masters []*redistest.Server, name string) time.Time {
	c.t.Helper()
	ends := func() []int64 {
		all := make([]int64, len(masters))
		for i, s := range masters {
			ms, err := s.Do("PEXPIRETIME", name)
			if err != nil {
				c.t.Fatal(err)
			}
			all[i] = ms.(int64)
		}
		return all
	}
	before := ends()
	now := before
	c.until("the lease is renewed everywhere", func() bool {
		now = ends()
		for i := range now {
			if now[i] <= before[i] {
				return false
			}
		}
		return true
	})
	slices.Sort(now)
	return time.UnixMilli(now[len(now)/2])
}

func stopAll(masters []*redistest.Server) {
	for _, s := range masters {
		s.Stop()
	}
}

func TestOnLossACommandThatEndsAtSIGTERMIsNotKilled(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"--ttl", "2s", "name"},
		sh(`trap "echo tidied up >term; exit 0" TERM; sleep 60 & echo yes >started; wait`)...)...).start()
	c.content("started")

	free := renewal(c, masters, "name")
	stopAll(masters)
	c.wantExit(exitLost)

	c.content("term")
	tidied, err := os.Stat(c.file("term"))
	if err != nil || !tidied.ModTime().Before(free) {
		t.Errorf("the command ended too late (%v)", err)
	}
	c.wantStderr("SIGTERM")
	if strings.Contains(c.stderr.String(), "SIGKILL") {
		t.Errorf("a command that ended by itself was killed:\n%s", &c.stderr)
	}
}

// The keys are gone from a majority: somebody else may have the lock already.
func TestALockThatIsFoundLostKillsTheGroupAtOnce(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"--ttl", "4s", "name"}, deaf(t)...)...).start()
	c.content("beat.inner")
	free := renewal(c, masters, "name")
	for _, s := range masters[:2] {
		if _, err := s.Do("DEL", "name"); err != nil {
			t.Fatal(err)
		}
	}
	c.wantExit(exitLost)

	c.wantStderr("lost", "SIGKILL")
	// The next renewal finds the loss. SIGTERM comes long after that, when grace of
	// the validity is left.
	for _, file := range []string{"term.inner", "term.outer"} {
		if _, err := os.Stat(c.file(file)); err == nil {
			t.Errorf("the group got SIGTERM: it lived on until the validity was nearly over")
		}
	}
	if beat := latest(c, "beat.inner", "beat.outer"); !beat.Before(free) {
		t.Errorf("the group was alive until %v, want before %v", beat, free)
	}
	wantFree(t, masters, "name")
}

func TestAShortOutageOfAllMastersDoesNotDisturbTheCommand(t *testing.T) {
	const ttl = 6 * time.Second
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"--ttl", ttl.String(), "--grace", "500ms", "name"}, sh("echo yes >started; read x; exit 9")...)...)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.start().content("started")

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
	c.wantExit(9)
	wantFree(t, masters, "name")
}
