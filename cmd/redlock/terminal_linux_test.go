package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestThe_command_has_the_terminal(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("read line; echo got $line; read more")...)...)
	tty := c.AtTerminal()

	tty.Enter("hello")
	tty.Shows("got hello")
	tty.Enter("\x03") // ^C

	c.WantExit(128 + 2)
	clitest.WantFree(t, masters, "name")
}

func TestA_killed_command_leaves_the_terminal_as_it_was(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("stty -echo -icanon; echo ready; kill -KILL $$")...)...)
	tty := c.AtTerminal()
	tty.Shows("ready")
	c.WantExit(128 + 9)
	modes, err := unix.IoctlGetTermios(int(tty.Slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if modes.Lflag&unix.ECHO == 0 || modes.Lflag&unix.ICANON == 0 {
		t.Error("the terminal does not echo whole lines any more")
	}
}

// In a script or a pipeline, ^C is for everybody, and the command gets the
// terminal when it reads from it.
func TestThe_command_of_a_script_gets_the_terminal_when_it_reads(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters)
	c.InShell("sh", "-c", `"$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'read line; echo got $line' | cat; echo after; read line; echo the script got $line`)
	tty := c.AtTerminal()

	tty.Enter("one")
	tty.Shows("got one")
	tty.Shows("after")
	tty.Enter("two")
	tty.Shows("the script got two")

	c.WantExit(0)
}

func TestThe_interrupt_key_ends_a_script(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters)
	c.InShell("sh", "-c", `trap 'echo the script too; exit 5' INT; "$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'echo ready; exec sleep 60'; echo after`)
	tty := c.AtTerminal()
	tty.Shows("ready")
	tty.Enter("\x03")
	tty.Shows("the script too")
	c.WantExit(5)
	clitest.WantFree(t, masters, "name")
}

func TestThe_stop_key_stops_the_command_until_the_shell_continues_it(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters)
	c.Env = append(c.Env, "PS1=> ", "ENV=")
	c.InShell("sh", "-i")
	tty := c.AtTerminal()

	tty.Enter(`"$REDLOCK" run --restart-guard 0 --node-timeout 1s name -- sh -c 'echo $((20+1)); while read line; do echo got $line; done'`)
	tty.Shows("21")
	tty.Enter("\x1a") // ^Z
	tty.Shows("Stopped")
	tty.Enter("echo the shell $((40+2))")
	tty.Shows("the shell 42")
	tty.Enter("fg")
	tty.Enter("again")
	tty.Shows("got again")
	tty.Enter("\x04") // ^D
	tty.Enter("exit $((5+2))")

	c.WantExit(7)
	clitest.WantFree(t, masters, "name")
}

func TestA_command_stopped_for_longer_than_the_TTL_is_killed(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.RunOn(t, masters)
	c.Env = append(c.Env, "PS1=> ", "ENV=")
	c.InShell("sh", "-i")
	tty := c.AtTerminal()

	// A shell that is just starting a program cannot be stopped, hence the exec.
	tty.Enter(`"$REDLOCK" run --restart-guard 0 --node-timeout 900ms --ttl 5s name -- sh -c 'trap "" TERM; echo $((20+1)); exec sleep 60'`)
	tty.Shows("21")
	tty.Enter("\x1a")
	tty.Shows("Stopped")
	c.Until("the keys have ended", func() bool { return strings.Join(clitest.Holders(t, masters, "name"), "") == "" })
	tty.Enter("fg")
	tty.Shows("SIGKILL")
	tty.Enter("exit $?")

	c.WantExit(cli.ExitLost)
}

func TestForced_Unlock_asks_at_a_terminal(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, c := range []struct {
		answer  string
		exit    int
		says    string
		deletes bool
	}{
		{"n", cli.ExitFailure, "nothing was changed", false},
		{"\n", cli.ExitFailure, "nothing was changed", false},
		{"yes", 0, "name: deleted", true},
	} {
		clitest.Set(t, masters, "name", "web1:42/nonce/7 nightly", "PX", 600000)
		unlock := clitest.OnMasters(t, masters, "unlock", "--force", "--node-timeout", "1s", "name")
		tty := unlock.AtTerminal()
		tty.Shows("held by web1:42 (nightly)")
		tty.Shows("Delete it from every master? [y/N]")

		tty.Enter(c.answer)

		unlock.WantExit(c.exit)
		tty.Shows(c.says)
		if deleted := strings.Join(clitest.Holders(t, masters, "name"), "") == ""; deleted != c.deletes {
			t.Errorf("answer %q: deleted %v, want %v", c.answer, deleted, c.deletes)
		}
	}
}
