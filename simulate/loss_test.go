package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// hasty are schedules in which a lock goes from hand to hand as fast as it can, on a
// network where many messages are late, by clients that are stopped in the middle
// all the time: messages about a waiter come when its lease is being unlocked.
func hasty() Config {
	return Config{
		Nodes: 3, TTL: 50 * time.Millisecond, Duration: 10 * time.Second, stops: 30,
		Faults: Mix{Name: "late messages", Strict: true, TailThousandths: 600},
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			all := make([][]Action, cfg.Clients)
			for i := range all {
				for range 1000 {
					all[i] = append(all[i], Action{Think: dice.between(0, cfg.TTL/10), Patience: 8 * cfg.TTL, Hold: dice.between(0, cfg.TTL/1000)})
				}
			}
			return nil, all
		},
	}
}

// A client that forgot a waiter before it released its lease answered the messages
// about it by releases, and Unlock then said that the lease had been lost.
func TestA_late_message_is_no_loss(t *testing.T) {
	cfg := hasty()
	cfg.Seeds = some(60)
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("seed %d: %v", f.Seed, f.Violations)
	}
	if slower > 1 {
		return // what follows takes long, and has nothing to do with races
	}
	cfg = hasty()
	cfg.unsafe = seam.Unsafe{ForgetEarly: true}
	if brokenWithin(t, cfg, FalseLoss, 200) == 0 {
		t.Error("nobody notices when that protection is missing")
	}
}

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
			delete(at.master.keys.Keys, lockName)
		}
		// When Unlock returns without an error.
		tr.check.unlocked(cl, keepers, true, nil)
		// Then it lies where no quorum has let go.
		if v := tr.check.violations; len(v) != c.want || len(v) > 0 && v[0].Kind != FalseRelease {
			t.Errorf("kept by %d: violations %v, want %d", c.keep, v, c.want)
		}
	}
}

// keptByThree is a lease that three masters store.
func keptByThree() (*trial, *claim, []kept) {
	tr := &trial{world: newWorld(), config: &Config{Nodes: 3, Lock: PlainLock}}
	tr.check = newChecker(tr)
	c := &client{host: newHost(tr.world, clientIDs+1, "client 1")}
	cl := &claim{client: c, value: "1.0/nonce/1:0", hold: overHold{silentHold{c.host.clock, epoch}}}
	cl.names = []string{lockName}
	for i := range 3 {
		m := newMaster(tr.world, i, 0)
		m.keys.Store(lockName, &masters.Entry{Value: cl.value, Until: m.keys.Millis() + 1000})
		tr.masters, c.masters = append(tr.masters, m), append(c.masters, m)
	}
	return tr, cl, tr.check.keepers(cl)
}

// deletedByHand are schedules in which an operator deletes the lock of client 1 at two
// masters of three or more, and client 2 gets it before client 1 unlocks.
func deletedByHand() Config {
	return Config{
		Nodes: 3, Clients: 2, TTL: 10 * time.Second, Duration: 16 * time.Second, Faults: Only(Delete),
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			at, spared := dice.between(500*time.Millisecond, time.Second), dice.below(cfg.Nodes)
			var faults []Fault
			for i := range cfg.Nodes {
				if i != spared || dice.chance(200) {
					faults = append(faults, Fault{Kind: Delete, At: at, Node: i})
				}
			}
			return faults, [][]Action{
				{{Think: dice.between(0, 100*time.Millisecond), Patience: time.Second, Hold: dice.between(time.Second, cfg.TTL*8/10)}},
				{{Think: time.Second, Patience: cfg.TTL, Hold: cfg.TTL, Renew: true}},
			}
		},
	}
}

// S54: whatever operators do, nil from Unlock says that nobody else has had the lock.
func TestS54_Unlock_says_nil_only_if_nobody_else_had_the_lock(t *testing.T) {
	cfg := deletedByHand()
	cfg.Seeds = some(300)
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats.Violations[Overlap] == 0 {
		t.Error("nobody got the lock that was deleted")
	}
	if n := r.Stats.Violations[FalseRelease]; n > 0 {
		t.Errorf("in %d of %d schedules Unlock said nil, and somebody else had had the lock", n, cfg.Seeds)
	}
}
