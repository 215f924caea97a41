package plan

import "github.com/quorumlock/quorumlock/simulate/internal/world"

// habits is what the clients of a schedule do often and what seldom, in thousandths.
// Clients that all do a little of everything hardly ever do one thing twice in a row.
// So half of the schedules draw habits, which all clients have for the whole run.
type habits struct {
	renews    int // its lease is renewed by itself
	overstays int // its work takes longer than a TTL
	extends   int // it asks for more time in the middle of its work
	shortens  int // it asks for another TTL then
	resizes   int // of a semaphore whose number changes
	brinks    int // it unlocks just before the end of its validity
}

// Usual is what clients do that have no habit of their own.
var usual = habits{renews: 700, overstays: 100, extends: 100, shortens: 500, resizes: 60}

// drawHabits draws the habits of a schedule, in half of them.
func (cfg *Config) drawHabits(dice *world.Dice) habits {
	if !cfg.Swarm || cfg.Usual || cfg.drawnFor() != nil || !dice.Chance(500) {
		return usual
	}
	return habits{
		renews:    pick(dice, 100, 700, 1000),
		overstays: pick(dice, 0, 100, 500, 900),
		extends:   pick(dice, 0, 100, 600),
		shortens:  pick(dice, 0, 500, 1000),
		resizes:   pick(dice, 60, 300, 600),
		brinks:    pick(dice, 0, 0, 300),
	}
}
