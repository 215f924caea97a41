package main

import (
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
	clitest.OnMasters(t, masters, short("name")...).Begin().WantExit(cli.ExitNoQuorum)
}

// L44: after a restart the time for which a master must not vote passes while the doctor
// waits, and the next job need not wait.
func TestReal_L44_doctor_waits_until_the_masters_vote(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	c := clitest.OnMasters(t, masters, "doctor", "--wait", "--restart-guard", "2s").Begin()
	c.End()
	c.WantStderr("do not vote for another ")
	clitest.OnMasters(t, masters, append([]string{"run", "--wait", "0"}, short("name")[1:]...)...).Begin().WantExit(0)
}

// L44: masters that lose nothing when they restart need not wait.
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
	clitest.OnMasters(t, masters, args...).Begin().WantExit(0)
}
