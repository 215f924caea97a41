package main

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

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

// startFamily runs the family under the lock and returns its process ids.
func startFamily(t *testing.T, masters []*redistest.Server) (*command, []int) {
	t.Helper()
	c := runOn(t, masters, "--ttl", "2s", "name", "--", "sh", "./family")
	if err := os.WriteFile(c.file("family"), []byte(family), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	var pids []int
	for _, name := range members {
		pid, err := strconv.Atoi(c.content("pid." + name))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		t.Cleanup(func() {
			if exists(pid) {
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

func TestNothingOfTheCommandLivesUnderTheNextHolder(t *testing.T) {
	for name, harm := range map[string]func(c *command, masters []*redistest.Server){
		"the wrapper is killed": func(c *command, _ []*redistest.Server) {
			c.signal(syscall.SIGKILL)
			c.end()
		},
		"the wrapper stands still": func(c *command, _ []*redistest.Server) { c.signal(syscall.SIGSTOP) },
		"the supervisor is killed": func(c *command, _ []*redistest.Server) {
			syscall.Kill(supervisorOf(c), syscall.SIGKILL)
			c.wantExit(128 + 9)
		},
		"a majority of masters hangs": func(c *command, masters []*redistest.Server) {
			for _, s := range masters[:3] {
				s.Stop()
			}
			c.wantExit(exitLost)
			for _, s := range masters[:3] {
				s.Continue()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := redistest.StartN(t, 5)
			c, pids := startFamily(t, masters)

			harm(c, masters)
			next(t, masters)

			for i, pid := range pids {
				if exists(pid) {
					t.Errorf("%s, process %d, is there under the next holder", members[i], pid)
				}
			}
		})
	}
}

// supervisorOf returns the process between the wrapper and its command.
func supervisorOf(c *command) int {
	c.t.Helper()
	pids := children(c.Process.Pid)
	if len(pids) != 1 {
		c.t.Fatalf("the wrapper has the children %v, want the supervisor alone", pids)
	}
	return pids[0]
}

// A wrapper that stood still finds its command dead and says why.
func TestAWrapperThatStoodStillSaysThatTheLockWasLost(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c, pids := startFamily(t, masters)

	c.signal(syscall.SIGSTOP)
	c.until("the command is gone", func() bool { return !exists(pids[0]) })
	c.signal(syscall.SIGCONT)

	c.wantExit(exitLost)
	c.wantStderr(`"name"`, "SIGKILL")
}

// A command that has done its work may leave a daemon behind on purpose.
func TestADaemonOfACommandThatEndedByItselfIsLeftAlone(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"name"},
		sh(`setsid sh -c 'echo $$ >pid; exec sleep 60 >/dev/null 2>&1' >/dev/null 2>&1 & while ! [ -s pid ]; do sleep 0.01; done`)...)...)
	c.start().wantExit(0)
	pid, err := strconv.Atoi(c.content("pid"))
	if err != nil {
		t.Fatal(err)
	}
	if !exists(pid) {
		t.Error("the daemon was killed")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	wantFree(t, masters, "name")
}

func TestASupervisorRunsNothingWhenTheLockHasEnded(t *testing.T) {
	path, err := lookUp("touch")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/ran"
	_, err = startGroup(path, []string{"touch", file}, os.Environ(), nil, boottime()-1)
	if err == nil {
		t.Error("the command was started")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran")
	}
}
