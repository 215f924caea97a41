package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// untilStopped is a command that says that it runs, and runs until TERM.
var untilStopped = sh(`echo yes >ran; exec sleep 1000`)

func TestRunSharedRunsBesideOtherReadersAndNoWriter(t *testing.T) {
	masters := redistest.StartN(t, 3)
	first := runOn(t, masters, append([]string{"--shared", "config"}, untilStopped...)...).start()
	first.content("ran")

	runOn(t, masters, "--shared", "config", "--", "true").start().wantExit(0)
	writer := runOn(t, masters, "--write", "config", "--", "true").start()
	writer.wantExit(exitBusy)
	writer.wantStderr("held by 1 reader")

	first.signal(syscall.SIGTERM)
	first.wantExit(128 + 15)
	runOn(t, masters, "--write", "config", "--", "true").start().wantExit(0)
}

func TestRunHoldsPermitsOfASemaphore(t *testing.T) {
	masters := redistest.StartN(t, 3)
	first := runOn(t, masters, append([]string{"-n", "2", "--of", "3", "gpu"}, untilStopped...)...).start()
	first.content("ran")

	runOn(t, masters, "--of", "3", "gpu", "--", "true").start().wantExit(0)
	busy := runOn(t, masters, "-n", "2", "--of", "3", "gpu", "--", "true").start()
	busy.wantExit(exitBusy)
	busy.wantStderr("1 of 3 permits free")
	other := runOn(t, masters, "--of", "4", "gpu", "--", "true").start()
	other.wantExit(exitConfig) // the masters were asked
	other.wantStderr("another number of permits: the masters have 3, --of says 4")

	first.signal(syscall.SIGTERM)
	first.wantExit(128 + 15)
	runOn(t, masters, "-n", "3", "--of", "3", "gpu", "--", "true").start().wantExit(0)
}

func TestRunFencedGivesTheCommandARisingToken(t *testing.T) {
	masters := redistest.StartN(t, 3)
	last := uint64(0)
	for i, args := range [][]string{
		{"--fenced", "name", "--", "printenv", "REDLOCK_TOKEN"},
		{"--fenced", "--fair", "name", "--", "printenv", "REDLOCK_TOKEN"},
		{"--fenced", "--token-env", "FENCE", "name", "--", "printenv", "FENCE"},
		{"--fenced", "--of", "2", "name", "--", "printenv", "REDLOCK_TOKEN"},
	} {
		c := runOn(t, masters, args...)
		c.Env = append(c.Env, "REDLOCK_TOKEN=1", "FENCE=2")
		c.start().wantExit(0)
		token, err := strconv.ParseUint(strings.TrimSpace(c.stdout.String()), 10, 64)
		if err != nil || token <= last {
			t.Errorf("%d: token %q after %d", i, &c.stdout, last)
		}
		last = token
	}
}

func TestRunDoesNotPassAnothersTokenOn(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, "name", "--", "printenv", "REDLOCK_TOKEN")
	c.Env = append(c.Env, "REDLOCK_TOKEN=1")
	c.start().wantExit(1)
	if c.stdout.Len() > 0 {
		t.Errorf("the command under an unfenced lock has the token %q", &c.stdout)
	}
}

func TestHoldFencedPrintsTheToken(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, "--hold", "--fenced", "name").start()
	c.until("the lock is held", func() bool { return holders(t, masters, "name")[2] != "" })
	counter, err := masters[2].Do("GET", "redlock:token:name")
	if err != nil {
		t.Fatal(err)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(0)
	c.wantStdout("\n" + string(counter.([]byte)) + "\n")
}

func TestElectRunsTheCommandOfOneLeaderAfterTheOther(t *testing.T) {
	masters := redistest.StartN(t, 3)
	elect := func(value string) *command {
		args := []string{"elect", "--restart-guard", "0", "--node-timeout", "900ms", "--value", value, "boss"}
		return onMasters(t, masters, append(args, sh(`echo "$REDLOCK_TOKEN" >ran; exec sleep 1000`)...)...).start()
	}
	watch := onMasters(t, masters, "observe", "--json", "--node-timeout", "900ms", "boss")
	seen := json.NewDecoder(watch.output())
	watch.start()

	first := elect("10.0.0.1:80")
	one := first.content("ran")
	second := elect("10.0.0.2:80")
	wantLeader(t, seen, "10.0.0.1:80", one)
	first.signal(syscall.SIGTERM)
	first.wantExit(128 + 15)
	two := second.content("ran")
	wantLeader(t, seen, "10.0.0.2:80", two)
	if len(two) < len(one) || two <= one {
		t.Errorf("token %s after %s", two, one)
	}
	text := onMasters(t, masters, "observe", "--node-timeout", "900ms", "boss")
	shown := bufio.NewReader(text.output())
	text.start()
	if line, err := shown.ReadString('\n'); err != nil || !strings.HasPrefix(line, "10.0.0.2:80  token "+two+"  ") {
		t.Errorf("observe shows %q, %v", line, err)
	}
	text.signal(syscall.SIGINT)
	text.wantExit(0)
	watch.signal(syscall.SIGINT)
	watch.wantExit(0)
	second.signal(syscall.SIGTERM)
	second.wantExit(128 + 15)
	wantFree(t, masters, "boss")
}

// output is what a command prints while it runs.
func (c *command) output() io.Reader {
	c.t.Helper()
	c.Stdout = nil
	out, err := c.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func TestElectDoesNotSayTheValueOfAnOuterLock(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := onMasters(t, masters, "elect", "--restart-guard", "0", "--node-timeout", "900ms", "boss", "--", "printenv", "REDLOCK_VALUE")
	c.Env = append(c.Env, "REDLOCK_VALUE=stale")
	c.start().wantExit(0)
	if strings.Contains(c.stdout.String(), "stale") {
		t.Errorf("the leader's value is %q", &c.stdout)
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
func TestTheCommandsOfThePageOfKindsWork(t *testing.T) {
	masters := redistest.StartN(t, 3)
	ran := 0
	for _, line := range commandLines(read(t, tree+"/docs/kinds.md")) {
		words := strings.Fields(line)[1:]
		if words[0] == "observe" { // has no end; see TestElectRunsTheCommandOfOneLeaderAfterTheOther
			continue
		}
		c := onMasters(t, masters, words...)
		c.Env = append(c.Env, "REDLOCK_NODE_TIMEOUT=900ms", "REDLOCK_RESTART_GUARD=0")
		if script := words[len(words)-1]; strings.HasPrefix(script, "./") {
			if err := os.WriteFile(c.file(script), []byte("#!/bin/sh\necho ran >ran\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.start().wantExit(0)
			c.content("ran")
		} else if code := c.start().end(); code != 0 && code != exitFree {
			t.Errorf("%s: exit code %d\n%s", line, code, &c.stderr)
		}
		ran++
	}
	if ran < 6 {
		t.Errorf("only %d commands found", ran)
	}
}
