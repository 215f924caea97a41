package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
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
func TestALateMessageIsNoLoss(t *testing.T) {
	cfg := hasty()
	cfg.Seeds = 60 / share()
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
