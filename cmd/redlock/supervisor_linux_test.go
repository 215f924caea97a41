package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// family is a command that nothing but SIGKILL ends, with a child, a
// grandchild, one in a session of its own, and a daemon that nobody is the
// parent of any more.
const family = `
trap "" TERM HUP
stay() { echo $$ >pid.$1.new; mv pid.$1.new pid.$1; while :; do sleep 0.1; done; }
case $1 in "") ;; *) stay $1 ;; esac
sh $0 child &
sh -c 'sh $0 grandchild & wait' $0 &
setsid sh $0 session &
(setsid sh $0 daemon &)
stay outer`

var members = []string{"outer", "child", "grandchild", "session", "daemon"}

// familyTTL is long: a fortieth of it is left to the supervisor of a busy machine.
const familyTTL = "10s"

// startFamily runs the family under the lock and returns its process ids.
func startFamily(t *testing.T, masters []*redistest.Server) (*clitest.Command, []int) {
	t.Helper()
	c := clitest.RunOn(t, masters, "--ttl", familyTTL, "name", "--", "sh", "./family")
	if err := os.WriteFile(c.File("family"), []byte(family), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Begin()
	var pids []int
	for _, name := range members {
		pid, err := strconv.Atoi(c.Content("pid." + name))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		t.Cleanup(func() {
			if clitest.Exists(pid) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
	return c, pids
}

// next returns when the lock has gone to somebody else.
func next(t *testing.T, masters []*redistest.Server) *redlock.Lease {
	t.Helper()
	client, err := redlock.Dial(t.Context(), redistest.URLs(masters), redlock.WithRestartGuard(0), redlock.WithNodeTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := client.Mutex("name").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestReal_S57_nothing_of_the_command_lives_under_the_next_holder(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(c *clitest.Command, masters []*redistest.Server){
		"the wrapper is killed": func(c *clitest.Command, _ []*redistest.Server) {
			c.Signal(syscall.SIGKILL)
			c.End()
		},
		"the wrapper stands still": func(c *clitest.Command, _ []*redistest.Server) { c.Signal(syscall.SIGSTOP) },
		"the supervisor is stopped, and masters hang": func(c *clitest.Command, masters []*redistest.Server) {
			syscall.Kill(supervisorOf(c), syscall.SIGSTOP)
			stopThree(c, masters)
		},
		"a debugger holds the supervisor, and masters hang": func(c *clitest.Command, masters []*redistest.Server) {
			holdByDebugger(c.T, supervisorOf(c))
			stopThree(c, masters)
		},
		"the supervisor is killed": func(c *clitest.Command, _ []*redistest.Server) {
			syscall.Kill(supervisorOf(c), syscall.SIGKILL)
			c.WantExit(128 + 9)
		},
		"a majority of masters hangs": stopThree,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := redistest.StartN(t, 5)
			c, pids := startFamily(t, masters)

			harm(c, masters)
			next(t, masters)

			for i, pid := range pids {
				if clitest.Exists(pid) {
					t.Errorf("%s, process %d, is there under the next holder", members[i], pid)
				}
			}
		})
	}
}

// stopThree stops three masters until the command's lock is lost.
func stopThree(c *clitest.Command, masters []*redistest.Server) {
	c.T.Helper()
	for _, s := range masters[:3] {
		s.Stop()
	}
	c.WantExit(cli.ExitLost)
	for _, s := range masters[:3] {
		s.Continue()
	}
}

// holdByDebugger stops every thread of a process as a debugger does: SIGCONT does not
// continue it.
func holdByDebugger(t *testing.T, pid int) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the debugger is this thread, and ends with it
		threads, err := stopThreads(pid)
		done <- err
		// Until all have been killed, and no other children of this thread: they are of
		// other tests. The first thread of a process goes last.
		delete(threads, pid)
		for tid := range threads {
			reap(tid)
		}
		reap(pid)
	}()
	if err := <-done; err != nil {
		t.Fatal("the supervisor cannot be debugged: ", err)
	}
}

// reap waits for the end of a thread that is traced.
func reap(tid int) {
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(tid, &status, syscall.WALL, nil); err != nil && err != syscall.EINTR || status.Exited() || status.Signaled() {
			return
		}
	}
}

func stopThreads(pid int) (stopped map[int]bool, err error) {
	stopped = map[int]bool{}
	for more := true; more; {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return stopped, err
		}
		more = false
		for _, thread := range threads {
			tid, _ := strconv.Atoi(thread.Name())
			if stopped[tid] {
				continue
			}
			if err := unix.PtraceSeize(tid); err != nil {
				return stopped, err
			}
			if err := unix.PtraceInterrupt(tid); err != nil {
				return stopped, err
			}
			stopped[tid], more = true, true
		}
	}
	return stopped, nil
}

// A supervisor that somebody stops goes on: the end of the command is noticed, and the
// lock is released.
func TestReal_S57_a_stopped_supervisor_is_continued(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >started; read x; exit 5")...)...)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Begin().Content("started")
	syscall.Kill(supervisorOf(c), syscall.SIGSTOP)
	stdin.Close()
	c.WantExit(5)
	clitest.WantFree(t, masters, "name")
}

// The command has the descriptors that redlock has, and no others.
func TestReal_S56_the_command_has_no_descriptors_of_ours(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const list = "ls /proc/$$/fd; true"
	plain := exec.Command("sh", "-c", list)
	plain.ExtraFiles = []*os.File{null, null, null}
	want, err := plain.Output()
	if err != nil {
		t.Fatal(err)
	}

	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh(list)...)...)
	c.ExtraFiles = plain.ExtraFiles
	c.Begin().WantExit(0)
	if got := c.Out.String(); got != string(want) {
		t.Errorf("the command has the descriptors %q, want those of a command without redlock: %q", got, want)
	}
}

// supervisorOf returns the process between the wrapper and its command.
func supervisorOf(c *clitest.Command) int {
	c.T.Helper()
	pids := clitest.Children(c.Process.Pid)
	if len(pids) != 1 {
		c.T.Fatalf("the wrapper has the children %v, want the supervisor alone", pids)
	}
	return pids[0]
}

// A wrapper that stood still finds its command dead and says why.
func TestA_wrapper_that_stood_still_says_that_the_lock_was_lost(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c, pids := startFamily(t, masters)

	c.Signal(syscall.SIGSTOP)
	c.Until("the command is gone", func() bool { return !clitest.Exists(pids[0]) })
	c.Signal(syscall.SIGCONT)

	c.WantExit(cli.ExitLost)
	c.WantStderr(`"name"`, "SIGKILL")
}

// A command that has done its work may leave a daemon behind on purpose.
func TestA_daemon_of_a_command_that_ended_by_itself_is_left_alone(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"},
		clitest.Sh(`setsid sh -c 'echo $$ >pid; exec sleep 60 >/dev/null 2>&1' >/dev/null 2>&1 & while ! [ -s pid ]; do sleep 0.01; done`)...)...)
	c.Begin().WantExit(0)
	pid, err := strconv.Atoi(c.Content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if !clitest.Exists(pid) {
		t.Error("the daemon was killed")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	clitest.WantFree(t, masters, "name")
}
