package promises

import (
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// overHold is a lease that has been unlocked.
type overHold struct{ silentHold }

func (overHold) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func TestAn_Unlock_that_no_quorum_has_run_is_no_success(t *testing.T) {
	for _, c := range []struct {
		keep int // of three masters
		want int
	}{{0, 0}, {1, 0}, {2, 1}, {3, 1}} {
		// Given three masters that keep a lease, and an Unlock that reached some.
		tr, cl, keepers := keptByThree()
		for _, at := range keepers[c.keep:] {
			delete(at.master.Keys.Keys, plan.LockName)
		}
		// When Unlock returns without an error.
		tr.Check.Unlocked(cl, keepers, true, nil)
		// Then it lies where no quorum has let go.
		if v := tr.Check.Violations; len(v) != c.want || len(v) > 0 && v[0].Kind != tally.FalseRelease {
			t.Errorf("kept by %d: violations %v, want %d", c.keep, v, c.want)
		}
	}
}

// keptByThree is a lease that three masters store.
func keptByThree() (*Scene, *Claim, []kept) {
	tr := &Scene{World: world.New(), Left: func(*Claim) {}, Config: &plan.Config{Nodes: 3, Lock: plan.PlainLock}}
	tr.Check = newChecker(tr)
	c := &Client{Client: &fleet.Client{Host: world.NewHost(tr.World, fleet.ClientIDs+1, "client 1")}}
	cl := &Claim{Client: c, Value: "1.0/nonce/1:0", Hold: overHold{silentHold{c.Host.Clock, world.Epoch}}}
	cl.Names = []string{plan.LockName}
	for i := range 3 {
		m := fleet.NewMaster(tr.World, i, 0)
		m.Keys.Store(plan.LockName, &masters.Entry{Value: cl.Value, Until: m.Keys.Millis() + 1000})
		tr.Masters, c.Masters = append(tr.Masters, m), append(c.Masters, m)
	}
	return tr, cl, tr.Check.Keepers(cl)
}
