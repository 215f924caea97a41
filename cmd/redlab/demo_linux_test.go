package main

import (
	"bytes"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestDemo_tells_the_whole_story(t *testing.T) {
	t.Parallel()
	c := clitest.New(t, "demo")
	start := time.Now()
	c.Begin().WantExit(0)
	t.Logf("%v\n%s", time.Since(start), &c.Out)

	story := c.Out.String()
	for _, event := range []string{
		"alice takes the lock",
		"granted by 1 2 3 4 5; valid for",
		"bob wants it too, is refused, and waits",
		"× ● ● ● ●   node 1 is killed",
		"× ● ● ● ●   alice's lease is renewed all the same, by 2 3 4 5",
		"× × ● ● ●   node 2 is killed",
		"× × ● ● ●   alice's lease is renewed all the same, by 3 4 5",
		"longer than its TTL; bob is waiting",
		"× × × ● ●   node 3 is killed",
		"× × × ○ ○   alice is told that she has lost the lock",
		"told ",
		"it to others", // node 3 would grant it, or, where alice was told too late, would have granted it
		"× × × ○ ○   bob waits on",
		"× × × ○ ○   nodes 1, 2 and 3 are started",
		"bob has the lock, after", // from a quorum: the others may not be connected again yet
		"○ ○ ○ ○ ○   bob unlocks",
		"a fenced lock: alice has it, with token",
		"bob writes, with token",
		"alice goes on, and her write arrives: refused",
		"the file has seen token",
	} {
		_, after, ok := strings.Cut(story, event)
		if !ok {
			t.Errorf("the demo does not tell %q, or not in its place", event)
			continue
		}
		story = after
	}
	mustAgreeWithItsClock(t, c.Out.String(), "nodes 1, 2 and 3 are started")
	if bytes.ContainsRune(c.Out.Bytes(), '\x1b') {
		t.Error("escape sequences where there is no terminal")
	}
	for line := range strings.Lines(c.Out.String()) {
		if n := len([]rune(line)); n > 81 {
			t.Errorf("%d columns: %s", n-1, line)
		}
	}
}

// mustAgreeWithItsClock checks that bob's wait, as the demo tells it, is what has passed
// by its clock since the line that says what he waited for.
func mustAgreeWithItsClock(t *testing.T, story, since string) {
	t.Helper()
	begin := regexp.MustCompile(`(?m)^ *([\d.]+s) .*` + since).FindStringSubmatch(story)
	end := regexp.MustCompile(`(?m)^ *([\d.]+s) .*bob has the lock, after (\S+)`).FindStringSubmatch(story)
	if begin == nil || end == nil {
		t.Fatalf("no time of %q, or of bob's turn:\n%s", since, story)
	}
	var times [3]time.Duration
	for i, text := range []string{begin[1], end[1], end[2]} {
		var err error
		if times[i], err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const rounding = 20 * time.Millisecond
	if passed := times[1] - times[0]; (times[2] - passed).Abs() > rounding {
		t.Errorf("%q was at %v, and bob had the lock at %v: that is %v, and not %v", since, times[0], times[1], passed, times[2])
	}
}

// A process that stands still is told of its loss when it goes on, and it says so.
// That is no reason to fail: Lease.Valid was false in time.
func TestDemo_survives_a_machine_that_stands_still(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	c := clitest.New(t, "demo", "--ttl", ttl.String())
	tty := c.AtTerminal()
	tty.Shows("node 3 is killed")
	c.Signal(syscall.SIGSTOP)
	time.Sleep(2 * ttl) // node 3 has forgotten the lock by then
	c.Signal(syscall.SIGCONT)
	if code := c.End(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, tty.Text())
	}
	for _, text := range []string{"too late, on a busy machine", "but Valid() was false in time", "bob unlocks"} {
		if !strings.Contains(tty.Text(), text) {
			t.Errorf("it does not say %q:\n%s", text, tty.Text())
		}
	}
}

func TestDemo_is_colorful_only_at_a_terminal_that_wants_it(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1)
	for _, test := range []struct {
		env  string
		want bool
	}{
		{"TERM=xterm", true},
		{"TERM=dumb", false},
		{"NO_COLOR=1", false},
	} {
		c := clitest.New(t, "demo", "--ttl", "1s", "--nodes", masters[0].Addr())
		c.Env = append(c.Env, "TERM=xterm", "NO_COLOR=", test.env)
		tty := c.AtTerminal()
		tty.Shows("alice takes the lock")
		if got := strings.Contains(tty.Text(), "\x1b[3"); got != test.want {
			t.Errorf("with %s: color %v, want %v", test.env, got, test.want)
		}
		c.Process.Kill()
		c.End()
	}
}

// Masters that started a moment ago are held back by the restart guard, and
// nobody kills one that is not ours.
func TestDemo_on_real_masters_kills_none(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	masters[2].Kill()
	addrs := []string{masters[0].Addr(), masters[1].Addr(), masters[2].Addr()}
	c := clitest.New(t, "demo", "--ttl", "1s", "--nodes", strings.Join(addrs, ","))
	c.Begin().WantExit(0)
	for _, text := range []string{
		"Nothing is killed here", "restart guard", "● ● ×   alice takes the lock", "bob wants it too",
		"longer than its TTL", "alice unlocks", "bob has the lock", "○ ○ ×   bob unlocks",
	} {
		if !strings.Contains(c.Out.String(), text) {
			t.Errorf("the demo does not tell %q", text)
		}
	}
	mustAgreeWithItsClock(t, c.Out.String(), "alice unlocks")
	if t.Failed() {
		t.Logf("%s", &c.Out)
	}
}

func TestDemo_fails_when_something_is_not_as_it_says(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1)
	c := clitest.New(t, "demo", "--ttl", "2s", "--nodes", masters[0].Addr()).Begin()
	c.Until("alice has her lock", func() bool {
		n, err := masters[0].Do("EVAL", `return #redis.call('keys', 'redlock-demo-*')`, 0)
		return err == nil && n == int64(1)
	})
	if _, err := masters[0].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	c.WantExit(cli.ExitFailure)
	c.WantStderr("the demo did not go as it must")
	if n := strings.Count(c.Errors.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, &c.Errors)
	}
}
