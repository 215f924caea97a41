package main

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// L44: in a fleet that is idle, a restarted master waits for the next job to see the
// restart. The job sits that out, although it does not wait for a holder.
func TestReal_L44_run_sits_out_a_quarantine_but_no_holder(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.OnMasters(t, masters, short("name")...).Begin()
	c.WantExit(0)
	c.WantStderr("do not vote for another ", "waiting for them")

	for _, s := range masters {
		if _, err := s.Do("SET", "name", "somebody", "PX", time.Minute.Milliseconds()); err != nil {
			t.Fatal(err)
		}
	}
	clitest.OnMasters(t, masters, short("name")...).Begin().WantExit(cli.ExitBusy)

	// Another client has a guard of a minute: that is longer than ours, and is not sat out.
	clitest.OnMasters(t, masters, "run", "--wait", "0", "--ttl", "1m", "name", "--", "true").Begin().WantExit(cli.ExitNoQuorum)
	c = clitest.OnMasters(t, masters, short("name")...).Begin()
	c.WantExit(cli.ExitNoQuorum)
	c.WantStderr("another client's restart guard is longer than ours, 5s", "--wait forever")
}

// L44: after a restart the time for which a master must not vote passes while the doctor
// waits, and the next job need not wait.
func TestReal_L44_doctor_waits_until_the_masters_vote(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.OnMasters(t, masters, "doctor", "--wait", "--restart-guard", "5s").Begin()
	c.End()
	c.WantStderr("do not vote for another ")
	clitest.OnMasters(t, masters, append([]string{"run", "--wait", "0"}, short("name")[1:]...)...).Begin().WantExit(0)
}

// Who waits for new masters need not wait any longer when an operator declares them new in
// another window. The guard is an hour, so whoever went on with it would never end.
func TestReal_who_waits_for_new_masters_goes_on_when_they_are_declared_new(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run":          {"run", "--ttl", "1h", "name", "--", "true"},
		"run and wait": {"run", "--ttl", "1h", "--wait", "forever", "name", "--", "true"},
		"elect":        {"elect", "--ttl", "1h", "name", "--", "true"},
		"doctor":       {"doctor", "--wait", "--restart-guard", "1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := redistest.StartN(t, 3)
			c := clitest.OnMasters(t, masters, args...)
			c.Stderr = nil
			said, err := c.StderrPipe()
			clitest.Must(t, err)
			c.Begin()
			if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "for another 1h") {
				t.Fatalf("it says %q, error %v", line, err)
			}

			clitest.OnMasters(t, masters, "init").Begin().WantExit(0)

			if code := c.End(); code != 0 && !(name == "doctor" && code == 1) { // which finds that they forget
				t.Errorf("exit %d", code)
			}
		})
	}
}

// L44: masters that lose nothing when they restart need not wait, also if doctor looks at them
// first.
func TestReal_L44_run_knows_durable_masters(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3, redistest.AOF())
	addrs := ""
	for _, s := range masters {
		addrs += "," + s.Addr()
	}
	args := append([]string{"run", "--wait", "0", "--durable-nodes", addrs[1:]}, short("name")[1:]...)
	if _, err := redlock.Init(t.Context(), redistest.URLs(masters)); err != nil {
		t.Fatal(err)
	}
	clitest.OnMasters(t, masters, args...).Begin().WantExit(0)
	for _, s := range masters {
		s.Restart()
	}
	clitest.OnMasters(t, masters, "doctor", "--wait", "--restart-guard", "1h", "--durable-nodes", addrs[1:]).Begin().End()
	clitest.OnMasters(t, masters, args...).Begin().WantExit(0)
}
