package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// TestEach_oracle_sees_what_it_is_for switches one protection off at a time, in
// schedules of the usual kind: an oracle that takes a clash of two clients to
// see anything would need thousands of them.
func TestEach_oracle_sees_what_it_is_for(t *testing.T) {
	for _, c := range []struct {
		name    string
		breaks  tally.ViolationKind
		without func(*plan.Config)
		seeds   int
	}{
		{"no drift allowance", tally.Unbacked, withoutProtections(weaker.Lacks{Allowance: true}), 2},
		{"elapsed time read before the votes are in", tally.Unbacked, unsafe(seam.Unsafe{EarlyElapsed: true}), 20},
		{"half of the masters is enough", tally.Unbacked, func(cfg *plan.Config) { cfg.Nodes, cfg.Lacks.Majority = 4, true }, 20},
		{"deadline moved when the renewal is sent", tally.Unbacked, withoutProtections(weaker.Lacks{Answers: true}), 20},
		{"extend counts what it made anew", tally.Unbacked, func(cfg *plan.Config) {
			cfg.Faults, cfg.Lacks.OwnKeysOnly = plan.Only(plan.Flush), true
		}, 100},
		{"no restart guard", tally.GaveAway, noRestartGuard, 20},
		{"a restart guard that ends too soon", tally.GaveAway, func(cfg *plan.Config) {
			cfg.TTL, cfg.Duration, cfg.Faults = 10*time.Second, 100*time.Second, plan.Only(plan.Failover)
			cfg.ShortGuard = 8 * time.Second
		}, 50},
		{"one value for all attempts", tally.OwnDelete, withoutProtections(weaker.Lacks{FreshValue: true}), 20},
		{"no release after a failed attempt", tally.Leftover, withoutProtections(weaker.Lacks{Discard: true}), 20},
		{"a permit's token that a majority has not counted", tally.Token, func(cfg *plan.Config) {
			*cfg = plan.WithLock(plan.FencedSemaphoreLock, mix(plan.ClientStep, plan.Partition, plan.CutOut, plan.CutIn))()
			cfg.Duration, cfg.Permits, cfg.Lacks.Raise = 20*time.Second, 3, true
		}, 200},
		{"no messages", tally.FreeAndWanted, func(cfg *plan.Config) { cfg.Faults, cfg.Mute = plan.Calm, true }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := plan.Config{Duration: 20 * time.Second}
			c.without(&cfg)
			n := brokenWithin(t, cfg, c.breaks, c.seeds)
			if n == 0 {
				t.Fatalf("no %s within %d seeds", c.breaks, c.seeds)
			}
			t.Logf("%s in seed %d", c.breaks, n-1)
		})
	}
}

// A master that forgets a key after its clock was set back has broken no promise
// when it grants the lock after the longest TTL (seeds 1256 and 3212 of the swarm).
func TestA_key_that_a_clock_keeps_for_longer_is_not_promised_for_longer(t *testing.T) {
	for _, c := range []struct {
		name    string
		flushed time.Duration
		actions [][]plan.Action
	}{
		{"held when the clock is set back", 2050 * time.Millisecond, [][]plan.Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: 2 * time.Second, Renew: true}},
			// It asks between the two, and holds the lock when C may grant again.
			{{Think: 2*time.Second - plan.Connecting, Patience: 5 * time.Second, Hold: time.Second}, {Patience: time.Second, Hold: time.Second}},
		}},
		{"handed to one who waits since before", 2200 * time.Millisecond, [][]plan.Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: 1800 * time.Millisecond, Renew: true}, {Think: 1500 * time.Millisecond, Patience: time.Second}},
			{{Think: 1800 * time.Millisecond, Patience: 5 * time.Second, Hold: 500 * time.Millisecond}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := simulated(t, plan.Config{Seeds: 1, Clients: 2, Duration: 8 * time.Second, Faults: plan.Calm,
				Script: func(*world.Dice, *plan.Config) ([]plan.Fault, [][]plan.Action) {
					return []plan.Fault{
						{Kind: plan.Step, Node: 2, At: 2 * time.Second, Size: -10 * time.Second},
						// Who waits does not renew at once what it is given.
						{Kind: plan.ClientPause, Client: 1, At: 2040 * time.Millisecond, For: 200 * time.Millisecond},
						{Kind: plan.Flush, Node: 2, At: c.flushed},
					}, c.actions
				},
			})
			for _, f := range r.Failures {
				t.Error(f.Violations)
			}
		})
	}
}

func TestA_workload_gets_every_check(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		breaks   tally.ViolationKind
		workload func(p *Process, c *redlock.Client)
	}{
		{"two clients wait for each other", tally.Stuck, func(p *Process, c *redlock.Client) {
			names := []string{"a", "b"}
			c.Mutex(names[p.Client()]).Lock(ctx)
			p.Sleep(ctx, time.Second)
			c.Mutex(names[1-p.Client()]).Lock(ctx)
		}},
		{"one does not know that it should end", tally.Stuck, func(p *Process, c *redlock.Client) {
			for p.Client() == 0 {
				p.Sleep(ctx, time.Second)
			}
		}},
		{"one never gives the lock back", tally.Stuck, func(p *Process, c *redlock.Client) {
			if p.Client() == 0 {
				c.Mutex("a").Lock(ctx)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Run(plan.Config{Seeds: 1, Clients: 2, Duration: 5 * time.Second, Faults: plan.Calm}, c.workload)
			if err != nil {
				t.Fatal(err)
			}
			if r.Stats.Violations[c.breaks] != 1 {
				t.Errorf("violations %v, want %s", r.Stats.Violations, c.breaks)
			}
		})
	}
}
