package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
)

func TestInitSparesNewMastersTheRestartGuard(t *testing.T) {
	masters := redistest.StartN(t, 3)
	c := onMasters(t, masters, "init").start()
	c.wantExit(0)
	c.wantPrinted("marked as new")

	run := onMasters(t, masters, append([]string{"run", "--ttl", "1h", "--node-timeout", "1s", "name"}, sh("true")...)...)
	run.start().wantExit(0)

	again := onMasters(t, masters, "init").start()
	again.wantExit(0)
	again.wantPrinted("was marked already")
}

func TestInitRefusesMastersThatHaveLocks(t *testing.T) {
	masters := redistest.StartN(t, 3)
	masters[1].Do("SET", "orders", "somebody", "PX", "60000")
	c := onMasters(t, masters, "init").start()
	c.wantExit(exitFailure)
	c.wantStderr(masters[1].Addr(), "not new", `"orders"`)
	for _, s := range masters {
		if v, _ := s.Do("EXISTS", "redlock:marker"); v != int64(0) {
			t.Errorf("%s was marked", s.Addr())
		}
	}
}

// Beside masters in use, the one without a marker is named, and the reason is given
// once. A client that sees it does not advise an init that would refuse.
func TestInitNamesTheMasterThatIsNotNewBesideOthersInUse(t *testing.T) {
	masters := redistest.StartN(t, 5)
	onMasters(t, masters, "init").start().wantExit(0)
	forgetInit(t, masters)
	for _, s := range masters[3:] {
		if _, err := s.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		c := onMasters(t, masters, "init").start()
		c.wantExit(exitFailure)
		c.wantStderr(s.Addr(), "other masters are in use")
		if n := strings.Count(c.stderr.String(), "in use"); n != 1 {
			t.Errorf("it says that %d times:\n%s", n, &c.stderr)
		}
		for _, other := range masters[:3] {
			if strings.Contains(c.stderr.String(), other.Addr()) {
				t.Errorf("it names %s, which is in use:\n%s", other.Addr(), &c.stderr)
			}
		}
	}
	run := onMasters(t, masters, append([]string{"run", "--node-timeout", "5s", "lock"}, sh("true")...)...)
	run.start().wantExit(0)
	run.wantStderr(masters[3].Addr(), "if all the masters are new, see redlock init")
}

// forgetInit has masters that were declared new be in use: for a minute it could have
// been an init that failed halfway.
func forgetInit(t *testing.T, masters []*redistest.Server) {
	t.Helper()
	for _, s := range masters {
		stored, err := s.Do("GET", "redlock:marker")
		if err != nil {
			t.Fatal(err)
		}
		m, err := node.ParseMarker(string(stored.([]byte)))
		if err != nil {
			t.Fatal(err)
		}
		aged := node.NewMaster(m.RunID, time.Now().Add(-time.Hour), m.Hold, m.Group)
		if _, err := s.Do("SET", "redlock:marker", aged.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInitRegroupsMastersThatAreInUse(t *testing.T) {
	masters := redistest.StartN(t, 5)
	onMasters(t, masters[:3], "init").start().wantExit(0)
	refused := onMasters(t, masters, short("name")...).start()
	refused.wantExit(exitConfig)
	refused.wantStderr("another group")

	c := onMasters(t, masters, "init", "--regroup", "--guard", "1s").start()
	c.wantExit(0)
	c.wantPrinted("may vote in", "was one of 3 masters")
	wait := onMasters(t, masters, short("--wait", "20s", "name")...)
	wait.start().wantExit(0)

	old := onMasters(t, masters[:3], short("name")...).start()
	old.wantExit(exitConfig)
	few := onMasters(t, masters[:2], "init", "--regroup").start()
	few.wantExit(exitFailure) // the masters were asked
	few.wantStderr("a quorum of it must be among them")
}

// Who has regrouped them need not look for a client.
func TestInitAfterARegroupSaysThatTheMastersDoNotVoteYet(t *testing.T) {
	masters := redistest.StartN(t, 3)
	onMasters(t, masters, "init", "--regroup").start().wantExit(0)

	c := onMasters(t, masters, "init").start()

	c.wantExit(exitFailure)
	c.wantStderr("it was marked ", " ago; it may vote in ")
	if strings.Contains(c.stderr.String(), "client") {
		t.Errorf("it speaks of a client, and there was none:\n%s", &c.stderr)
	}
}

// short is redlock run with a short TTL and as short a restart guard.
func short(args ...string) []string {
	return append(append([]string{"run", "--ttl", "1s", "--restart-guard", "1s", "--node-timeout", "200ms"}, args...), sh("true")...)
}

func (c *command) wantPrinted(parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(c.stdout.String(), part) {
			c.t.Errorf("stdout does not say %q:\n%s", part, &c.stdout)
		}
	}
}

func TestInitSaysThatAMasterRefusesUs(t *testing.T) {
	masters := redistest.StartN(t, 3)
	if _, err := masters[1].Do("CONFIG", "SET", "requirepass", "hunter2"); err != nil {
		t.Fatal(err)
	}
	c := onMasters(t, masters, "init").start()
	c.wantExit(exitConfig)
	c.wantStderr(masters[1].Addr(), "NOAUTH")
}

// Who tries once is told once that the masters do not vote yet.
func TestAQuarantineIsToldOnce(t *testing.T) {
	c := onMasters(t, redistest.StartN(t, 3), "run", "--node-timeout", "10s", "lock", "--", "true").start()
	c.wantExit(exitNoQuorum)
	c.wantStderr("quarantined for another ", "redlock init")
	if n := strings.Count(c.stderr.String(), "\n"); n != 1 {
		t.Errorf("it says that in %d lines:\n%s", n, &c.stderr)
	}
}

// A list of masters that cannot be right is no mistake that another try repairs.
func TestMastersOfAnotherGroupOrListedTwiceHaveAnExitCodeOfTheirOwn(t *testing.T) {
	masters := redistest.StartN(t, 3)
	onMasters(t, masters[:2], "init").start().wantExit(0)
	twice := masters[2].Addr() + "," + strings.Replace(masters[2].Addr(), "127.0.0.1", "localhost", 1)
	for _, c := range []*command{
		onMasters(t, masters, short("name")...),
		onMasters(t, masters, "init"),
		redlockCommand(t, "init", "--nodes", twice),
	} {
		c.start().wantExit(exitConfig)
	}
}
