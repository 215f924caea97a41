package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// S54: whatever operators do, nil from Unlock says that nobody else has had the lock.
func TestS54_Unlock_says_nil_only_if_nobody_else_had_the_lock(t *testing.T) {
	cfg := deletedByHand()
	cfg.Seeds = some(300)
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats.Violations[tally.Overlap] == 0 {
		t.Error("nobody got the lock that was deleted")
	}
	if n := r.Stats.Violations[tally.FalseRelease]; n > 0 {
		t.Errorf("in %d of %d schedules Unlock said nil, and somebody else had had the lock", n, cfg.Seeds)
	}
}

// deletedByHand are schedules in which an operator deletes the lock of client 1 at two
// masters of three or more, and client 2 gets it before client 1 unlocks.
func deletedByHand() plan.Config {
	return plan.Config{
		Nodes: 3, Clients: 2, TTL: 10 * time.Second, Duration: 16 * time.Second, Faults: plan.Only(plan.Delete),
		Script: func(dice *world.Dice, cfg *plan.Config) ([]plan.Fault, [][]plan.Action) {
			at, spared := dice.Between(500*time.Millisecond, time.Second), dice.Below(cfg.Nodes)
			var faults []plan.Fault
			for i := range cfg.Nodes {
				if i != spared || dice.Chance(200) {
					faults = append(faults, plan.Fault{Kind: plan.Delete, At: at, Node: i})
				}
			}
			return faults, [][]plan.Action{
				{{Think: dice.Between(0, 100*time.Millisecond), Patience: time.Second, Hold: dice.Between(time.Second, cfg.TTL*8/10)}},
				{{Think: time.Second, Patience: cfg.TTL, Hold: cfg.TTL, Renew: true}},
			}
		},
	}
}

// hasty are schedules in which a lock goes from hand to hand as fast as it can, on a
// network where many messages are late, by clients that are stopped in the middle
// all the time: messages about a waiter come when its lease is being unlocked.
func hasty() plan.Config {
	return plan.Config{
		Nodes: 3, TTL: 50 * time.Millisecond, Duration: 10 * time.Second, Stops: 30,
		Faults: plan.Mix{Name: "late messages", Strict: true, TailThousandths: 600},
		Script: func(dice *world.Dice, cfg *plan.Config) ([]plan.Fault, [][]plan.Action) {
			all := make([][]plan.Action, cfg.Clients)
			for i := range all {
				for range 1000 {
					all[i] = append(all[i], plan.Action{Think: dice.Between(0, cfg.TTL/10), Patience: 8 * cfg.TTL, Hold: dice.Between(0, cfg.TTL/1000)})
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
}
