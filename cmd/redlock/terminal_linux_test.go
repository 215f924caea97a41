package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestTheCommandHasTheTerminal(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"name"}, sh("read line; echo got $line; read more")...)...)
	tty := c.atTerminal()

	tty.enter("hello")
	tty.shows("got hello")
	tty.enter("\x03") // ^C

	c.wantExit(128 + 2)
	wantFree(t, masters, "name")
}

func TestAKilledCommandLeavesTheTerminalAsItWas(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters, append([]string{"name"}, sh("stty -echo -icanon; echo ready; kill -KILL $$")...)...)
	tty := c.atTerminal()
	tty.shows("ready")
	c.wantExit(128 + 9)
	modes, err := unix.IoctlGetTermios(int(tty.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if modes.Lflag&unix.ECHO == 0 || modes.Lflag&unix.ICANON == 0 {
		t.Error("the terminal does not echo whole lines any more")
	}
}

// In a script or a pipeline, ^C is for everybody, and the command gets the
// terminal when it reads from it.
func TestTheCommandOfAScriptGetsTheTerminalWhenItReads(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters)
	c.inShell("sh", "-c", `"$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'read line; echo got $line' | cat; echo after; read line; echo the script got $line`)
	tty := c.atTerminal()

	tty.enter("one")
	tty.shows("got one")
	tty.shows("after")
	tty.enter("two")
	tty.shows("the script got two")

	c.wantExit(0)
}

func TestTheInterruptKeyEndsAScript(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters)
	c.inShell("sh", "-c", `trap 'echo the script too; exit 5' INT; "$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'echo ready; exec sleep 60'; echo after`)
	tty := c.atTerminal()
	tty.shows("ready")
	tty.enter("\x03")
	tty.shows("the script too")
	c.wantExit(5)
	wantFree(t, masters, "name")
}

func TestTheStopKeyStopsTheCommandUntilTheShellContinuesIt(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters)
	c.Env = append(c.Env, "PS1=> ", "ENV=")
	c.inShell("sh", "-i")
	tty := c.atTerminal()

	tty.enter(`"$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'echo $((20+1)); while read line; do echo got $line; done'`)
	tty.shows("21")
	tty.enter("\x1a") // ^Z
	tty.shows("Stopped")
	tty.enter("echo the shell $((40+2))")
	tty.shows("the shell 42")
	tty.enter("fg")
	tty.enter("again")
	tty.shows("got again")
	tty.enter("\x04") // ^D
	tty.enter("exit $((5+2))")

	c.wantExit(7)
	wantFree(t, masters, "name")
}

func TestACommandStoppedForLongerThanTheTTLIsKilled(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := runOn(t, masters)
	c.Env = append(c.Env, "PS1=> ", "ENV=")
	c.inShell("sh", "-i")
	tty := c.atTerminal()

	// A shell that is just starting a program cannot be stopped, hence the exec.
	tty.enter(`"$REDLOCK" run --restart-guard 0 --node-timeout 900ms --ttl 1s name -- sh -c 'trap "" TERM; echo $((20+1)); exec sleep 60'`)
	tty.shows("21")
	tty.enter("\x1a")
	tty.shows("Stopped")
	c.until("the keys have ended", func() bool { return strings.Join(holders(t, masters, "name"), "") == "" })
	tty.enter("fg")
	tty.shows("SIGKILL")
	tty.enter("exit $?")

	c.wantExit(exitLost)
}

func TestForcedUnlockAsksAtATerminal(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, c := range []struct {
		answer  string
		exit    int
		says    string
		deletes bool
	}{
		{"n", exitFailure, "nothing was changed", false},
		{"\n", exitFailure, "nothing was changed", false},
		{"yes", 0, "name: deleted", true},
	} {
		set(t, masters, "name", "web1:42/nonce/7 nightly", "PX", 600000)
		unlock := onMasters(t, masters, "unlock", "--force", "--node-timeout", "1s", "name")
		tty := unlock.atTerminal()
		tty.shows("held by web1:42 (nightly)")
		tty.shows("Delete it from every master? [y/N]")

		tty.enter(c.answer)

		unlock.wantExit(c.exit)
		tty.shows(c.says)
		if deleted := strings.Join(holders(t, masters, "name"), "") == ""; deleted != c.deletes {
			t.Errorf("answer %q: deleted %v, want %v", c.answer, deleted, c.deletes)
		}
	}
}

func TestBenchShowsWhatItHasWhenItIsInterrupted(t *testing.T) {
	c := redlockCommand(t, "bench", "--quick", "--redis", "--masters", "1", "--only", "pair/1,handoff/relaxed", "--html", "page.html")
	tty := c.atTerminal()
	tty.shows("8 clients pass a lock on") // the first of the two is done

	tty.enter("\x03")

	c.wantExit(exitSignal + int(syscall.SIGINT))
	tty.shows("interrupted")
	tty.shows("what was measured until now is all there is")
	tty.shows("p99")
	if page := read(t, c.file("page.html")); !strings.Contains(page, "redsync on one") {
		t.Error("the page does not show the first workload")
	}
}

// inShell makes the command a shell's, which finds redlock in $REDLOCK.
func (c *command) inShell(argv ...string) {
	c.t.Helper()
	c.Env = append(c.Env, "REDLOCK="+c.Path)
	c.Path, c.Args = "/bin/sh", argv
}

// testTerminal is what a person would sit at.
type testTerminal struct {
	c             *command
	master, slave *os.File

	mu     sync.Mutex
	screen strings.Builder
}

// atTerminal starts the process at a terminal of its own.
func (c *command) atTerminal() *testTerminal {
	c.t.Helper()
	master, slave, err := openPTY()
	if err != nil {
		c.t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.start()
	tty := &testTerminal{c: c, master: master, slave: slave}
	done := make(chan struct{})
	go tty.record(done)
	c.t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-done
		if c.t.Failed() {
			c.t.Logf("the terminal shows:\n%s", tty.text())
		}
	})
	return tty
}

func openPTY() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0); err != nil {
		return nil, nil, err
	}
	raw, err := master.SyscallConn() // Fd would make reads block, so that Close could not end them
	if err != nil {
		return nil, nil, err
	}
	var number int
	var failure error
	err = raw.Control(func(fd uintptr) {
		if failure = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failure == nil {
			number, failure = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err == nil {
		err = failure
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	return master, slave, err
}

func (tty *testTerminal) record(done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := tty.master.Read(buf)
		tty.mu.Lock()
		tty.screen.Write(buf[:n])
		tty.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (tty *testTerminal) text() string {
	tty.mu.Lock()
	defer tty.mu.Unlock()
	return tty.screen.String()
}

// enter types a line, or presses a control key.
func (tty *testTerminal) enter(line string) {
	tty.c.t.Helper()
	if line >= " " {
		line += "\n"
	}
	if _, err := tty.master.WriteString(line); err != nil {
		tty.c.t.Fatal(err)
	}
}

// shows waits until the text is on the screen.
func (tty *testTerminal) shows(text string) {
	tty.c.t.Helper()
	tty.c.until("the terminal shows "+text, func() bool { return strings.Contains(tty.text(), text) })
}
