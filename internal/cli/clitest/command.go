package clitest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Write puts a file into the folder where the process runs.
func (c *Command) Write(name, content string) string {
	c.T.Helper()
	path := c.File(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.T.Fatal(err)
	}
	return path
}

// Eventually tries until ok, at most for the given time.
func Eventually(within time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// What a fresh user does: everything from here on runs outside of this tree, with
// an empty module cache, and takes the library from a proxy.

// Everything has the user also add a Prometheus, and run what the pages show with
// as many schedules as they say.
var Everything = flag.Bool("all", false, "all that a new user can do: make fresh")

func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// IntoFull has the process write to a disk that is full.
func (c *Command) IntoFull() *Command {
	c.T.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { full.Close() })
	c.Stdout = full
	return c
}

// Pipe is what a command prints while it runs.
func (c *Command) Pipe() io.Reader {
	c.T.Helper()
	c.Stdout = nil
	out, err := c.StdoutPipe()
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}

// beTheCommand in the environment makes the test binary the command.
const beTheCommand = "REDLOCK_TEST_BE_THE_COMMAND"

// BecomeTheCommand runs the command instead of the tests if New has started the
// process. TestMain calls it first.
func BecomeTheCommand(main func()) {
	// The race detector would have every process that we start sleep for a second
	// at its end.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	if os.Getenv(beTheCommand) != "" {
		os.Unsetenv(beTheCommand)
		main()
	}
}

// WantEveryHelpToFit fails the test for help that is wider than a terminal.
func WantEveryHelpToFit(t *testing.T, root *cobra.Command) {
	for commands := []*cobra.Command{root}; len(commands) > 0; commands = commands[1:] {
		cmd := commands[0]
		commands = append(commands, cmd.Commands()...)
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			WantColumns(t, cmd.Long+"\n"+cmd.UsageString(), 80)
		})
	}
}

// Command is redlock running as a process.
type Command struct {
	*exec.Cmd
	T           *testing.T
	Out, Errors bytes.Buffer
}

// New prepares redlock with the given arguments.
func New(t *testing.T, args ...string) *Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &Command{Cmd: exec.Command(self, args...), T: t}
	c.Dir = t.TempDir()
	c.Env = append(OwnEnvironment(), beTheCommand+"=1", "XDG_CONFIG_HOME="+c.Dir,
		"GORACE=atexit_sleep_ms=0") // else each one sleeps for a second before it exits
	c.Stdout, c.Stderr = &c.Out, &c.Errors
	return c
}

// OwnEnvironment is the environment without what configures redlock.
func OwnEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "REDLOCK_") })
}

// OnMasters prepares redlock with the given masters in the environment, and with a node
// timeout that does not end on a busy machine: the tests are about something else.
func OnMasters(t *testing.T, masters []*redistest.Server, args ...string) *Command {
	t.Helper()
	c := New(t, args...)
	addrs := make([]string, len(masters))
	for i, s := range masters {
		addrs[i] = s.Addr()
	}
	c.Env = append(c.Env, "REDLOCK_NODES="+strings.Join(addrs, ","), "REDLOCK_NODE_TIMEOUT=900ms")
	return c
}

// Begin starts the process; it is killed at the latest when the test ends, with
// the groups that it started.
func (c *Command) Begin() *Command {
	c.T.Helper()
	c.WaitDelay = 10 * time.Second // a process that keeps our pipes must not stop the test
	if err := c.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() {
		if c.ProcessState != nil {
			return
		}
		for _, group := range Children(c.Process.Pid) {
			syscall.Kill(-group, syscall.SIGKILL)
		}
		c.Process.Kill()
		c.Wait()
	})
	return c
}

// Children returns the children of a process.
func Children(pid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		var child, parent int
		var state string
		head, tail, _ := strings.Cut(string(b), " (")
		fmt.Sscan(head, &child)
		fmt.Sscan(tail[strings.LastIndexByte(tail, ')')+1:], &state, &parent)
		if parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// End waits for the process and returns its exit code.
func (c *Command) End() int {
	c.T.Helper()
	// A process that hangs tells where.
	patience := 5 * time.Minute
	if *Everything {
		patience *= 10
	}
	timer := time.AfterFunc(patience, func() { c.Process.Signal(syscall.SIGABRT) })
	defer timer.Stop()
	err := c.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		c.T.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// WantExit waits for the process and fails the test if it has another exit code.
func (c *Command) WantExit(want int) {
	c.T.Helper()
	if got := c.End(); got != want {
		c.T.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, &c.Out, &c.Errors)
	}
}

func (c *Command) WantStderr(parts ...string) {
	c.T.Helper()
	for _, part := range parts {
		if !strings.Contains(c.Errors.String(), part) {
			c.T.Errorf("stderr does not say %q:\n%s", part, &c.Errors)
		}
	}
}

func (c *Command) Signal(sig syscall.Signal) {
	c.T.Helper()
	if err := c.Process.Signal(sig); err != nil {
		c.T.Fatal(err)
	}
}

// File returns the path of a file in the folder where the process runs.
func (c *Command) File(name string) string { return filepath.Join(c.Dir, name) }

// Content waits until the file has content and returns it.
func (c *Command) Content(name string) string {
	c.T.Helper()
	var text string
	c.Until("the file "+name+" is written", func() bool {
		b, _ := os.ReadFile(c.File(name))
		text = strings.TrimSpace(string(b))
		return text != ""
	})
	return text
}

// Until waits for a condition.
func (c *Command) Until(what string, ok func() bool) {
	c.T.Helper()
	if !Eventually(30*time.Second, ok) {
		c.T.Fatalf("not within 30s: %s", what)
	}
}

// Exists reports whether the process is there and not a zombie.
func Exists(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

// RunOn prepares redlock run on masters that were started a moment ago: with
// the restart guard, they could not vote yet.
func RunOn(t *testing.T, masters []*redistest.Server, args ...string) *Command {
	t.Helper()
	return OnMasters(t, masters, append([]string{"run", "--restart-guard", "0"}, args...)...)
}

// Sh ends the arguments of redlock run with a shell script.
func Sh(script string) []string { return []string{"--", "sh", "-c", script} }

func (c *Command) WantStdout(parts ...string) {
	c.T.Helper()
	for _, part := range parts {
		if !strings.Contains(c.Out.String(), part) {
			c.T.Errorf("stdout does not say %q:\n%s", part, &c.Out)
		}
	}
}

func (c *Command) WantNoSecret(secret string) {
	c.T.Helper()
	if strings.Contains(c.Out.String()+c.Errors.String(), secret) {
		c.T.Errorf("the password is shown:\n%s%s", &c.Out, &c.Errors)
	}
}

// WantColumns reports lines that a terminal of so many columns would break.
func WantColumns(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns, want at most %d: %s", n, columns, line)
		}
	}
}
