package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// untilStopped is a command that says that it runs, and runs until TERM.
var untilStopped = clitest.Sh(`echo yes >ran; exec sleep 1000`)

func TestRun_shared_runs_beside_other_readers_and_no_writer(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	first := clitest.RunOn(t, masters, append([]string{"--shared", "config"}, untilStopped...)...).Begin()
	first.Content("ran")

	clitest.RunOn(t, masters, "--shared", "config", "--", "true").Begin().WantExit(0)
	writer := clitest.RunOn(t, masters, "--write", "config", "--", "true").Begin()
	writer.WantExit(cli.ExitBusy)
	writer.WantStderr("held by 1 reader")

	first.Signal(syscall.SIGTERM)
	first.WantExit(128 + 15)
	clitest.RunOn(t, masters, "--write", "config", "--", "true").Begin().WantExit(0)
}

func TestRun_holds_permits_of_a_semaphore(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	first := clitest.RunOn(t, masters, append([]string{"-n", "2", "--of", "3", "gpu"}, untilStopped...)...).Begin()
	first.Content("ran")

	clitest.RunOn(t, masters, "--of", "3", "gpu", "--", "true").Begin().WantExit(0)
	busy := clitest.RunOn(t, masters, "-n", "2", "--of", "3", "gpu", "--", "true").Begin()
	busy.WantExit(cli.ExitBusy)
	busy.WantStderr("1 of 3 permits free")
	other := clitest.RunOn(t, masters, "--of", "4", "gpu", "--", "true").Begin()
	other.WantExit(cli.ExitConfig) // the masters were asked
	other.WantStderr("another number of permits: the masters have 3, --of says 4")

	first.Signal(syscall.SIGTERM)
	first.WantExit(128 + 15)
	clitest.RunOn(t, masters, "-n", "3", "--of", "3", "gpu", "--", "true").Begin().WantExit(0)
}

func TestRun_fenced_gives_the_command_a_rising_token(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	last := uint64(0)
	for i, args := range [][]string{
		{"--fenced", "name", "--", "printenv", "REDLOCK_TOKEN"},
		{"--fenced", "--fair", "name", "--", "printenv", "REDLOCK_TOKEN"},
		{"--fenced", "--token-env", "FENCE", "name", "--", "printenv", "FENCE"},
		{"--fenced", "--of", "2", "name", "--", "printenv", "REDLOCK_TOKEN"},
	} {
		c := clitest.RunOn(t, masters, args...)
		c.Env = append(c.Env, "REDLOCK_TOKEN=1", "FENCE=2")
		c.Begin().WantExit(0)
		token, err := strconv.ParseUint(strings.TrimSpace(c.Out.String()), 10, 64)
		if err != nil || token <= last {
			t.Errorf("%d: token %q after %d", i, &c.Out, last)
		}
		last = token
	}
}

func TestRun_does_not_pass_anothers_token_on(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, "name", "--", "printenv", "REDLOCK_TOKEN")
	c.Env = append(c.Env, "REDLOCK_TOKEN=1")
	c.Begin().WantExit(1)
	if c.Out.Len() > 0 {
		t.Errorf("the command under an unfenced lock has the token %q", &c.Out)
	}
}

func TestHold_fenced_prints_the_token(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, "--hold", "--fenced", "name")
	out := bufio.NewScanner(c.Pipe())
	c.Begin()
	out.Scan() // the value
	out.Scan()
	counted := 0
	for _, s := range masters {
		if counter, err := redis.String(s.Do("GET", "redlock:token:name")); err == nil && counter == out.Text() {
			counted++
		}
	}
	if counted < 2 {
		t.Errorf("%d masters have counted to the token %q", counted, out.Text())
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(0)
}

func TestElect_runs_the_command_of_one_leader_after_the_other(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	elect := func(value string) *clitest.Command {
		args := []string{"elect", "--restart-guard", "0", "--node-timeout", "900ms", "--value", value, "boss"}
		return clitest.OnMasters(t, masters, append(args, clitest.Sh(`echo "$REDLOCK_TOKEN" >ran; exec sleep 1000`)...)...).Begin()
	}
	watch := clitest.OnMasters(t, masters, "observe", "--json", "--node-timeout", "900ms", "boss")
	seen := json.NewDecoder(watch.Pipe())
	watch.Begin()

	first := elect("10.0.0.1:80")
	one := first.Content("ran")
	second := elect("10.0.0.2:80")
	second.Until("it is queued", func() bool { // or nobody leads for a moment
		n, err := masters[2].Do("ZCARD", "redlock:queue:boss")
		return err == nil && n == int64(1)
	})
	wantLeader(t, seen, "10.0.0.1:80", one)
	first.Signal(syscall.SIGTERM)
	first.WantExit(128 + 15)
	two := second.Content("ran")
	wantLeader(t, seen, "10.0.0.2:80", two)
	if len(two) < len(one) || two <= one {
		t.Errorf("token %s after %s", two, one)
	}
	text := clitest.OnMasters(t, masters, "observe", "--node-timeout", "900ms", "boss")
	shown := bufio.NewReader(text.Pipe())
	text.Begin()
	if line, err := shown.ReadString('\n'); err != nil || !strings.HasPrefix(line, "10.0.0.2:80  token "+two+"  ") {
		t.Errorf("observe shows %q, %v", line, err)
	}
	text.Signal(syscall.SIGINT)
	text.WantExit(0)
	watch.Signal(syscall.SIGINT)
	watch.WantExit(0)
	second.Signal(syscall.SIGTERM)
	second.WantExit(128 + 15)
	clitest.WantFree(t, masters, "boss")
}

func TestElect_does_not_say_the_value_of_an_outer_lock(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.OnMasters(t, masters, "elect", "--restart-guard", "0", "--node-timeout", "900ms", "boss", "--", "printenv", "REDLOCK_VALUE")
	c.Env = append(c.Env, "REDLOCK_VALUE=stale")
	c.Begin().WantExit(0)
	if strings.Contains(c.Out.String(), "stale") {
		t.Errorf("the leader's value is %q", &c.Out)
	}
}

// wantLeader reads the next leader that observe shows.
func wantLeader(t *testing.T, seen *json.Decoder, says, token string) {
	t.Helper()
	var l leaderStatus
	if err := seen.Decode(&l); err != nil {
		t.Fatal(err)
	}
	if l.Says != says || fmt.Sprint(l.Token) != token || l.Client == "" {
		t.Errorf("observe shows %+v; want %s with token %s", l, says, token)
	}
}

// What docs/kinds.md shows of the command works, one line after the other.
func TestThe_commands_of_the_page_of_kinds_work(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	ran := 0
	for _, line := range clitest.CommandLines(clitest.Read(t, clitest.Tree+"/docs/kinds.md"), "redlock") {
		words := strings.Fields(line)[1:]
		if words[0] == "observe" { // has no end; see TestElect_runs_the_command_of_one_leader_after_the_other
			continue
		}
		c := clitest.OnMasters(t, masters, words...)
		c.Env = append(c.Env, "REDLOCK_NODE_TIMEOUT=900ms", "REDLOCK_RESTART_GUARD=0")
		if script := words[len(words)-1]; strings.HasPrefix(script, "./") {
			if err := os.WriteFile(c.File(script), []byte("#!/bin/sh\necho ran >ran\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.Begin().WantExit(0)
			c.Content("ran")
		} else if code := c.Begin().End(); code != 0 && code != exitFree {
			t.Errorf("%s: exit code %d\n%s", line, code, &c.Errors)
		}
		ran++
	}
	if ran < 6 {
		t.Errorf("only %d commands found", ran)
	}
}
