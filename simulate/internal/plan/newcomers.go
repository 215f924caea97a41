package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file has the scenarios in which a client misjudges what a master remembers:
// because it is new and has seen nothing yet, or because clients differ in what
// they know of the masters.

// Newcomer plays a script on three masters and two clients with the production
// defaults. The second client starts in the middle.
func Newcomer(script func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		return Config{
			Nodes: 3, Clients: 2, TTL: defaults.TTL, Duration: 40 * time.Second,
			Faults: Calm, Script: script,
		}
	}
}

// arrival makes client 2 start at the given instant, without having done anything.
func arrival(at time.Duration) Fault {
	return Fault{Kind: ClientCrash, Client: 1, At: time.Millisecond, For: at - time.Millisecond}
}

// uptimeFloor: client 1 holds A and B. B restarts empty late in a second, and
// client 2 comes early in the next but one. To client 2, B seems a second older than
// it is, and so would vote a second before client 1's lease has ended.
func UptimeFloor(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	back := 2*time.Second + dice.Between(880*time.Millisecond, 999*time.Millisecond)
	down := dice.Between(time.Millisecond, 10*time.Millisecond)
	return []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: RestartEmpty, At: back - down, For: down, Node: 1},
			{Kind: Partition, At: back - down, For: cfg.Duration, Client: 0, Node: 1},
			arrival(4*time.Second + dice.Between(0, 20*time.Millisecond)),
		}, [][]Action{
			{{Think: back - down - Connecting - dice.Between(20*time.Millisecond, 100*time.Millisecond), Patience: time.Second, Hold: cfg.TTL}},
			{{Patience: cfg.TTL + time.Second, Hold: time.Second}},
		}
}

// newcomerAfterFlush: client 1 holds A and B and is cut off from B, which is
// flushed. Client 2 starts afterwards, and takes B and C.
func NewcomerAfterFlush(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	flushed := dice.Between(time.Second, 5*time.Second)
	return []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: Partition, At: flushed - 100*time.Millisecond, For: cfg.Duration, Client: 0, Node: 1},
			{Kind: Flush, At: flushed, Node: 1},
			arrival(flushed + dice.Between(0, 3*time.Second)),
		}, [][]Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.TTL}},
			{{Patience: 5 * time.Second, Hold: time.Second}},
		}
}

// unseen: as erosion, but client 2 asks before a heartbeat can have seen the fault.
func Unseen(k Kind) func(*world.Dice, *Config) ([]Fault, [][]Action) {
	return func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
		faults, actions := Erosion(Fault{Kind: k})(dice, cfg)
		actions[1][0].Think = faults[2].At - Connecting + dice.Between(0, 300*time.Millisecond)
		return faults, actions
	}
}

// mixedGuards: client 1 takes the lock with a TTL of two minutes, and does not
// renew it. Three masters of five restart empty. Client 2's guard is 30 s.
func MixedGuards() Config {
	return Config{
		Clients: 2, TTL: defaults.TTL, longTTL: 2 * time.Minute, Duration: 130 * time.Second, Faults: Calm,
		Script: func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
			var faults []Fault
			first := dice.Below(cfg.Nodes)
			for i := range 3 {
				faults = append(faults, Fault{
					Kind: RestartEmpty, Node: (first + i) % cfg.Nodes,
					At: 2*time.Second + dice.Between(0, time.Second), For: dice.Between(time.Millisecond, 300*time.Millisecond),
				})
			}
			return byTime(faults), [][]Action{
				{{Think: dice.Between(0, time.Second), Patience: time.Second, Hold: 100 * time.Second}},
				{{Think: dice.Between(5*time.Second, 50*time.Second), Patience: time.Minute, Hold: time.Second}},
			}
		},
	}
}

// splitConfig: client 1 believes that there are three masters; there are five.
func SplitConfig() Config {
	return Config{
		Clients: 2, TTL: defaults.TTL, Duration: 20 * time.Second, Faults: Calm, split: 3,
		Script: func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
			return []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2}}, [][]Action{
				{{Think: dice.Between(0, time.Second), Patience: 2 * time.Second, Hold: 10 * time.Second}},
				{{Think: dice.Between(2*time.Second, 5*time.Second), Patience: 5 * time.Second, Hold: time.Second}},
			}
		},
	}
}

// ThreeToFive: A, B and C become a group of five with D and E. An operator sends the new group
// to one master after the other, and goes through all masters the given number of times. Client
// 1 knows A, B and C, and takes the lock just before the last two of them get the new group, to
// keep it for hold. The other three masters are free for client 2, which knows all five.
func ThreeToFive(times int, hold time.Duration) Config {
	return Config{
		Clients: 2, TTL: defaults.TTL, Duration: 75 * time.Second, Faults: Calm, split: 3, founders: 3,
		Script: func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
			near := dice.Below(3) // told early: client 1 would hear of the group there, and must not reach it
			faults := []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: near}}
			at := time.Second
			var told time.Duration // when the first of client 1's two masters gets the group
			for pass := range times {
				for i, node := range []int{3, 4, near, (near + 1) % 3, (near + 2) % 3} {
					at += dice.Between(10*time.Millisecond, 2*time.Second)
					faults = append(faults, Fault{Kind: Regroup, At: at, Node: node})
					if pass == 0 && i == 3 {
						told = at
					}
				}
			}
			return faults, [][]Action{
				{{At: told - dice.Between(10*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: hold, Renew: hold > cfg.TTL}},
				{{Think: told, Patience: cfg.Duration, Hold: time.Second}},
			}
		},
	}
}

// ForgetfulMove: A, B and C become a group of five with D and E. Client 1 knows A, B and C, and
// has got its token from two of them. Client 2 knows all five, its clock is behind, and it
// reaches only the other three. With ToldOnly as the move, the masters get their new group and
// take over none of the tokens.
func ForgetfulMove(move []Fault) Config {
	return Config{
		Clients: 2, TTL: time.Second, Duration: 10 * time.Second, Faults: Calm, split: 3, founders: 3, Lock: FencedLock,
		Script: func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
			far := dice.Below(3) // client 1 does not reach it
			at := time.Second + dice.Between(0, time.Second)
			faults := []Fault{
				{Kind: ClientStep, Client: 1, Size: -dice.Spread(20*time.Second, time.Hour)},
				{Kind: Partition, For: cfg.Duration, Client: 0, Node: far},
				{Kind: Partition, For: cfg.Duration, Client: 1, Node: (far + 1) % 3},
				{Kind: Partition, For: cfg.Duration, Client: 1, Node: (far + 2) % 3},
			}
			for _, f := range move {
				f.At += at
				faults = append(faults, f)
			}
			return faults, [][]Action{
				{{Think: dice.Between(0, 500*time.Millisecond), Patience: time.Second, Hold: 100 * time.Millisecond}},
				{{Think: at, Patience: cfg.Duration, Hold: 100 * time.Millisecond}},
			}
		},
	}
}

// ToldOnly is a Regroup that takes nothing over: each of five masters gets the new group twice.
func ToldOnly() (faults []Fault) {
	for i := range 10 {
		faults = append(faults, Fault{Kind: Regroup, Node: i % 5, At: time.Duration(i) * time.Millisecond})
	}
	return faults
}

// initAfterLoss: client 1 holds A and B. Either B restarts empty soon after all were
// declared new, or A and B do long after that. The operator takes the empty masters
// for new ones, and runs redlock init before any client has seen them. Then client 2
// starts.
func InitAfterLoss(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
	back, lost := 2*time.Second+dice.Between(0, time.Second), []int{1}
	if dice.Chance(500) {
		back, lost = back+time.Minute, []int{0, 1}
	}
	faults := []Fault{{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2}}
	for _, node := range lost {
		faults = append(faults,
			Fault{Kind: Partition, At: back - 20*time.Millisecond, For: cfg.Duration, Client: 0, Node: node},
			Fault{Kind: RestartEmpty, At: back - 10*time.Millisecond, For: 10 * time.Millisecond, Node: node})
	}
	told := back + dice.Between(time.Millisecond, 5*time.Second)
	return append(faults, Fault{Kind: Init, At: told, Node: -1}, arrival(told+dice.Between(0, 3*time.Second))), [][]Action{
		{{Think: back - Connecting - dice.Between(100*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: cfg.TTL}},
		{{Patience: 5 * time.Second, Hold: time.Second}},
	}
}

// countedInQuarantine, on A, B and C: client 1 holds A and B. Its renewal finds no
// key at C, and the repair is held up in the network. Client 2 asks; C grants, is
// flushed, and then the repair arrives there. A and C answer client 1's next
// renewal. Its key at B, which it cannot reach any more, expires, and client 2,
// whose question to B took long, gets its second vote there.
func CountedInQuarantine() Config {
	const (
		ttl      = 3 * time.Second
		extended = 950 * time.Millisecond         // when client 1 asks C, which has no key
		held     = 1350 * time.Millisecond        // the repair, which arrives at most twice as late
		cut      = extended + 40*time.Millisecond // and cannot reach B any more
		asked    = extended + ttl - 700*time.Millisecond
	)
	return Config{
		Nodes: 3, Clients: 2, TTL: ttl, Duration: 12 * time.Second, Faults: Calm, NodeTimeout: 970 * time.Millisecond,
		Script: func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action) {
			return []Fault{
					{Kind: Errors, At: 190 * time.Millisecond, For: extended - 300*time.Millisecond, Client: -1, Node: 2, Code: "OOM"},
					{Kind: Slow, At: extended - 100*time.Millisecond, For: 200 * time.Millisecond, Client: 0, Node: 2, Size: 40 * time.Millisecond},
					{Kind: CutOut, At: extended + dice.Between(17*time.Millisecond, 38*time.Millisecond), For: held, Client: 0, Node: 2},
					{Kind: Partition, At: cut, For: cfg.Duration, Client: 0, Node: 1},
					{Kind: Slow, At: asked - 100*time.Millisecond, For: 400 * time.Millisecond, Client: 1, Node: 1, Size: 900 * time.Millisecond},
					{Kind: Flush, At: asked + dice.Between(20*time.Millisecond, 100*time.Millisecond), Node: 2},
				}, [][]Action{
					{{At: 200*time.Millisecond + Connecting, Patience: time.Second, Hold: 1400 * time.Millisecond, Extend: true, Renew: true, After: 5 * time.Second}},
					{{At: asked, Patience: 2 * time.Second, Hold: 2 * time.Second}},
				}
		},
	}
}

// byTime sorts faults by when they begin.
func byTime(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	return faults
}
