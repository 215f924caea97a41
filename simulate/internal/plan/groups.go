package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// GroupName is the name of the i-th group of masters.
func GroupName(i int) string { return string(rune('a' + i)) }

// GroupNames returns the names of n groups.
func GroupNames(n int) (names []string) {
	for i := range n {
		names = append(names, GroupName(i))
	}
	return names
}

// GroupSize is how many masters a group has.
func (cfg *Config) GroupSize() int { return cfg.Nodes / max(1, cfg.Groups) }

// drawGroups draws how many groups of masters there are, of as many masters as cfg.Nodes says.
func (cfg *Config) drawGroups(size int, dice *world.Dice) {
	if cfg.Lock != GroupsLock {
		return
	}
	SetDefault(&size, pick(dice, 3, 3, 3, 4, 5))
	cfg.Groups = pick(dice, 2, 2, 3)
	cfg.Nodes = size * cfg.Groups
	cfg.locks = pick(dice, 2, 3, 5)
	cfg.Deaf, cfg.Polling = 0, false
}

// spreads adds the operators who spread the names over other groups: they begin at any time, some
// while another is at it, and some die on the way.
func spreads(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	if cfg.Groups < 2 {
		return faults
	}
	// Between two changes the names rest for a restart guard.
	gap := dice.Spread(cfg.RestartGuard/2, 8*cfg.RestartGuard)
	for at := dice.Between(0, gap); at < cfg.Duration; at += dice.Between(0, 2*gap) {
		f := Fault{Kind: Spread, At: at, Node: -1, Client: -1, Over: someGroups(dice, cfg.Groups)}
		if dice.Chance(300) {
			f.For = dice.Spread(time.Millisecond, 2*cfg.RestartGuard)
		}
		if !cfg.Faults.OneClock {
			f.Rate = pick(dice, 0, 0, 0, -300_000, 2_000_000) // no other clock is as wrong
		}
		faults = append(faults, f)
		if dice.Chance(300) { // another operator
			f.At, f.Over, f.For = at+dice.Spread(100*time.Microsecond, 50*time.Millisecond), someGroups(dice, cfg.Groups), 0
			faults = append(faults, f)
		}
		if cfg.Faults.Name == Calm.Name {
			continue
		}
		if dice.Chance(300) { // a client that knows the map of before
			from := max(0, at-dice.Between(0, cfg.TTL))
			faults = append(faults, Fault{Kind: Partition, Client: dice.Below(cfg.Clients), Node: -1, At: from, For: dice.Spread(cfg.TTL/10, 4*cfg.RestartGuard)})
		}
		if dice.Chance(300) { // a master that may forget the map
			kind := pick(dice, Flush, RestartEmpty, RestartSnapshot)
			g := cfg.Faults.one(kind, at+dice.Between(-cfg.TTL/2, 2*cfg.RestartGuard), dice, cfg)
			g.At, g.For = max(0, g.At), min(g.For, cfg.TTL/4)
			if g.At < cfg.Duration { // later all is well
				faults = append(faults, g)
			}
		}
	}
	return byTime(faults)
}

// someGroups draws some of n groups, at least one.
func someGroups(dice *world.Dice, n int) string {
	names := slices.DeleteFunc(GroupNames(n), func(string) bool { return dice.Chance(400) })
	if len(names) == 0 {
		return GroupName(dice.Below(n))
	}
	return strings.Join(names, ",")
}

// Forgets reports whether a master may lose its memory by the fault.
func (f *Fault) Forgets() bool {
	return slices.Contains([]Kind{RestartEmpty, RestartSnapshot, RestartPartial, Failover, Flush, Follow}, f.Kind)
}
