package simulate

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// The sequences in which a master's memory is taken for what it is not: by
// clients that are new, that have seen nothing yet, or that know too little of
// each other.

// newcomer is a sequence of three masters and two clients with the production
// defaults, of which the second starts anew in the middle.
func newcomer(script func(dice *stream, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		return Config{
			Nodes: 3, Clients: 2, TTL: redlock.DefaultTTL, Duration: 40 * time.Second,
			Faults: Calm, script: script,
		}
	}
}

// arrival has client 2 start at the given instant, not having begun any work.
func arrival(at time.Duration) Fault {
	return Fault{Kind: ClientCrash, Client: 1, At: time.Millisecond, For: at - time.Millisecond}
}

// uptimeFloor: client 1 holds A and B. B restarts empty late in a second, and
// client 2 comes early in the next but one. B seems to be a second older than it
// is, and votes a second before the lease of client 1 has ended.
func uptimeFloor(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	back := 2*time.Second + dice.between(880*time.Millisecond, 999*time.Millisecond)
	down := dice.between(time.Millisecond, 10*time.Millisecond)
	return []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: RestartEmpty, At: back - down, For: down, Node: 1},
			{Kind: Partition, At: back - down, For: cfg.Duration, Client: 0, Node: 1},
			arrival(4*time.Second + dice.between(0, 20*time.Millisecond)),
		}, [][]Action{
			{{Think: back - down - connecting - dice.between(20*time.Millisecond, 100*time.Millisecond), Patience: time.Second, Hold: cfg.TTL}},
			{{Patience: cfg.TTL + time.Second, Hold: time.Second}},
		}
}

// newcomerAfterFlush: client 1 holds A and B and is cut off from B, which is
// flushed. Client 2 starts when that is over, and takes B and C.
func newcomerAfterFlush(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	flushed := dice.between(time.Second, 5*time.Second)
	return []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: Partition, At: flushed - 100*time.Millisecond, For: cfg.Duration, Client: 0, Node: 1},
			{Kind: Flush, At: flushed, Node: 1},
			arrival(flushed + dice.between(0, 3*time.Second)),
		}, [][]Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.TTL}},
			{{Patience: 5 * time.Second, Hold: time.Second}},
		}
}

// unseen: as erosion, but client 2 asks within the second in which no heartbeat has
// seen the fault.
func unseen(k Kind) func(*stream, *Config) ([]Fault, [][]Action) {
	return func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
		faults, actions := erosion(Fault{Kind: k})(dice, cfg)
		actions[1][0].Think = faults[2].At - connecting + dice.between(0, 300*time.Millisecond)
		return faults, actions
	}
}

// mixedGuards: client 1 holds the lock for two minutes, and does not renew it.
// Three masters of five restart empty; client 2 has a guard of 30 s.
func mixedGuards() Config {
	return Config{
		Clients: 2, TTL: redlock.DefaultTTL, longTTL: 2 * time.Minute, Duration: 130 * time.Second, Faults: Calm,
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			var faults []Fault
			first := dice.below(cfg.Nodes)
			for i := range 3 {
				faults = append(faults, Fault{
					Kind: RestartEmpty, Node: (first + i) % cfg.Nodes,
					At: 2*time.Second + dice.between(0, time.Second), For: dice.between(time.Millisecond, 300*time.Millisecond),
				})
			}
			return byTime(faults), [][]Action{
				{{Think: dice.between(0, time.Second), Patience: time.Second, Hold: 100 * time.Second}},
				{{Think: dice.between(5*time.Second, 50*time.Second), Patience: time.Minute, Hold: time.Second}},
			}
		},
	}
}

// splitConfig: client 1 takes three masters for all there are.
func splitConfig() Config {
	return Config{
		Clients: 2, TTL: redlock.DefaultTTL, Duration: 20 * time.Second, Faults: Calm, split: 3,
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			return []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2}}, [][]Action{
				{{Think: dice.between(0, time.Second), Patience: 2 * time.Second, Hold: 10 * time.Second}},
				{{Think: dice.between(2*time.Second, 5*time.Second), Patience: 5 * time.Second, Hold: time.Second}},
			}
		},
	}
}

// threeToFive: A, B and C become a group of five with D and E, which an operator
// tells one after the other, so many times. Client 1 knows the three, takes the
// lock just before the last two of them are told, and wants to hold it for so
// long; the other three are free for client 2, which knows all five.
func threeToFive(times int, hold time.Duration) Config {
	return Config{
		Clients: 2, TTL: redlock.DefaultTTL, Duration: 75 * time.Second, Faults: Calm, split: 3, founders: 3,
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			near := dice.below(3) // client 1 cannot reach it, or would hear of the group there
			faults := []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: near}}
			at := time.Second
			var told time.Duration // the first of those that client 1 asks
			for pass := range times {
				for i, node := range []int{3, 4, near, (near + 1) % 3, (near + 2) % 3} {
					at += dice.between(10*time.Millisecond, 2*time.Second)
					faults = append(faults, Fault{Kind: Regroup, At: at, Node: node})
					if pass == 0 && i == 3 {
						told = at
					}
				}
			}
			return faults, [][]Action{
				{{At: told - dice.between(10*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: hold, Renew: hold > cfg.TTL}},
				{{Think: told, Patience: cfg.Duration, Hold: time.Second}},
			}
		},
	}
}

// initAfterLoss: client 1 holds A and B. Either B restarts empty right after all were
// declared new, or A and B do long after that. The operator takes those that are empty
// for new ones, and runs redlock init before any client has seen them. Then client 2
// starts.
func initAfterLoss(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	back, lost := 2*time.Second+dice.between(0, time.Second), []int{1}
	if dice.chance(500) {
		back, lost = back+time.Minute, []int{0, 1}
	}
	faults := []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2}}
	for _, node := range lost {
		faults = append(faults,
			Fault{Kind: Partition, At: back - 20*time.Millisecond, For: cfg.Duration, Client: 0, Node: node},
			Fault{Kind: RestartEmpty, At: back - 10*time.Millisecond, For: 10 * time.Millisecond, Node: node})
	}
	told := back + dice.between(time.Millisecond, 5*time.Second)
	return append(faults, Fault{Kind: Init, At: told, Node: -1}, arrival(told+dice.between(0, 3*time.Second))), [][]Action{
		{{Think: back - connecting - dice.between(100*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: cfg.TTL}},
		{{Patience: 5 * time.Second, Hold: time.Second}},
	}
}

// declareNew is what node.Init does: it marks all masters that have no marker, if
// each may be new.
func (t *trial) declareNew() {
	for _, m := range t.masters {
		begins := m.mayBeNew() || m.marker() != "" && t.config.unsafeGuard.InitBeside
		if !begins {
			return
		}
	}
	for _, m := range t.masters {
		if m.marker() == "" {
			m.declareNew(groupOf(t.masters), t.config.guard(1).Hold)
		}
	}
}

// countedInQuarantine, on A, B and C: client 1 holds A and B; its renewal finds
// C without the key, and the repair is held up in the network. Client 2 asks; C
// grants and forgets it, and the repair arrives there. A renewal of client 1 is
// answered by A and C; B, which it cannot reach any more, expires; and there
// client 2, whose question took long, has its second vote.
func countedInQuarantine() Config {
	const (
		ttl      = 3 * time.Second
		extended = 950 * time.Millisecond         // when client 1 asks C, which has no key
		held     = 1350 * time.Millisecond        // the repair, which arrives at most twice as late
		cut      = extended + 40*time.Millisecond // and cannot reach B any more
		asked    = extended + ttl - 700*time.Millisecond
	)
	return Config{
		Nodes: 3, Clients: 2, TTL: ttl, Duration: 12 * time.Second, Faults: Calm, nodeTimeout: 970 * time.Millisecond,
		script: func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
			return []Fault{
					{Kind: Partition, At: 0, For: 300 * time.Millisecond, Client: 0, Node: 2},
					{Kind: Slow, At: extended - 100*time.Millisecond, For: 200 * time.Millisecond, Client: 0, Node: 2, Size: 40 * time.Millisecond},
					{Kind: CutOut, At: extended + dice.between(17*time.Millisecond, 38*time.Millisecond), For: held, Client: 0, Node: 2},
					{Kind: Partition, At: cut, For: cfg.Duration, Client: 0, Node: 1},
					{Kind: Slow, At: asked - 100*time.Millisecond, For: 400 * time.Millisecond, Client: 1, Node: 1, Size: 900 * time.Millisecond},
					{Kind: Flush, At: asked + dice.between(20*time.Millisecond, 100*time.Millisecond), Node: 2},
				}, [][]Action{
					{{At: 200*time.Millisecond + connecting, Patience: time.Second, Hold: 1400 * time.Millisecond, Extend: true, Renew: true, After: 5 * time.Second}},
					{{At: asked, Patience: 2 * time.Second, Hold: 2 * time.Second}},
				}
		},
	}
}

func byTime(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	return faults
}

// isStranger reports whether the client means another group of masters than
// one of them belongs to. It gets no lock until an operator decides (S14).
func (c *client) isStranger() bool {
	return c.group.Trouble() != nil
}
