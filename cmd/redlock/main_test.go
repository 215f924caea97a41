package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// beTheCommand in the environment makes the test binary the redlock command.
const beTheCommand = "REDLOCK_TEST_BE_THE_COMMAND"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == beDeaf {
		deafProcess(os.Args[2])
	}
	// The race detector would have every process that we start sleep for a second
	// at its end.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	if slices.Contains(os.Args[1:], "supervise") { // the command calls itself
		main()
	}
	if os.Getenv(beTheCommand) != "" {
		os.Unsetenv(beTheCommand)
		main()
	}
	// Under nohup, HUP is ignored, and redlock leaves it so. What is caught here is
	// not ignored by the processes that we start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	goleak.VerifyTestMain(m)
}

// command is redlock running as a process.
type command struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr bytes.Buffer
}

// redlockCommand prepares redlock with the given arguments.
func redlockCommand(t *testing.T, args ...string) *command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &command{Cmd: exec.Command(self, args...), t: t}
	c.Dir = t.TempDir()
	c.Env = append(ownEnvironment(), beTheCommand+"=1", "XDG_CONFIG_HOME="+c.Dir)
	c.Stdout, c.Stderr = &c.stdout, &c.stderr
	return c
}

// ownEnvironment is the environment without what configures redlock.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "REDLOCK_") })
}

// onMasters prepares redlock with the given masters in the environment.
func onMasters(t *testing.T, masters []*redistest.Server, args ...string) *command {
	t.Helper()
	c := redlockCommand(t, args...)
	addrs := make([]string, len(masters))
	for i, s := range masters {
		addrs[i] = s.Addr()
	}
	c.Env = append(c.Env, "REDLOCK_NODES="+strings.Join(addrs, ","))
	return c
}

// start starts the process; it is killed at the latest when the test ends, with
// the groups that it started.
func (c *command) start() *command {
	c.t.Helper()
	c.WaitDelay = 10 * time.Second // whoever is left with our pipes must not stop the test
	if err := c.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.ProcessState != nil {
			return
		}
		for _, group := range childrenOf(c.Process.Pid) {
			syscall.Kill(-group, syscall.SIGKILL)
		}
		c.Process.Kill()
		c.Wait()
	})
	return c
}

// childrenOf returns the children of a process.
func childrenOf(pid int) (pids []int) {
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

// end waits for the process and returns its exit code.
func (c *command) end() int {
	c.t.Helper()
	// A process that hangs tells where.
	patience := 5 * time.Minute
	if *everything {
		patience *= 10
	}
	timer := time.AfterFunc(patience, func() { c.Process.Signal(syscall.SIGABRT) })
	defer timer.Stop()
	err := c.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// wantExit waits for the process and fails the test if it has another exit code.
func (c *command) wantExit(want int) {
	c.t.Helper()
	if got := c.end(); got != want {
		c.t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, &c.stdout, &c.stderr)
	}
}

func (c *command) wantStderr(parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(c.stderr.String(), part) {
			c.t.Errorf("stderr does not say %q:\n%s", part, &c.stderr)
		}
	}
}

func (c *command) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// file returns the path of a file in the folder where the process runs.
func (c *command) file(name string) string { return filepath.Join(c.Dir, name) }

// content waits until the file has content and returns it.
func (c *command) content(name string) string {
	c.t.Helper()
	var text string
	c.until("the file "+name+" is written", func() bool {
		b, _ := os.ReadFile(c.file(name))
		text = strings.TrimSpace(string(b))
		return text != ""
	})
	return text
}

// until waits for a condition.
func (c *command) until(what string, ok func() bool) {
	c.t.Helper()
	if !eventually(30*time.Second, ok) {
		c.t.Fatalf("not within 30s: %s", what)
	}
}

// holders returns what each master stores under the name.
func holders(t *testing.T, masters []*redistest.Server, name string) []string {
	t.Helper()
	values := make([]string, len(masters))
	for i, s := range masters {
		reply, err := s.Do("GET", name)
		if err != nil {
			t.Fatalf("GET at %s: %v", s.Addr(), err)
		}
		if reply != nil {
			values[i] = string(reply.([]byte))
		}
	}
	return values
}

func wantFree(t *testing.T, masters []*redistest.Server, name string) {
	t.Helper()
	for i, v := range holders(t, masters, name) {
		if v != "" {
			t.Errorf("master %d still has %q", i, v)
		}
	}
}

// exists reports whether the process is there and not a zombie.
func exists(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

func TestEveryHelpFitsTheTerminal(t *testing.T) {
	root := newRootCommand()
	for commands := []*cobra.Command{root}; len(commands) > 0; commands = commands[1:] {
		cmd := commands[0]
		commands = append(commands, cmd.Commands()...)
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			wantColumns(t, cmd.Long+"\n"+cmd.UsageString(), 80)
		})
	}
}

func TestCompletionRefusesAnUnknownShell(t *testing.T) {
	c := redlockCommand(t, "completion", "tcsh").start()
	c.wantExit(exitUsage)
	c.wantStderr("completion tcsh: ", "bash, fish, powershell and zsh")
	if c.stdout.Len() > 0 {
		t.Errorf("it prints\n%s", &c.stdout)
	}
	redlockCommand(t, "completion").start().wantExit(0)
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		c := redlockCommand(t, "completion", shell).start()
		c.wantExit(0)
		c.wantPrinted("redlock")
	}
}
