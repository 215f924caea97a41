package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

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

// periods has some callers keep their locks for a period, in a sixth of the schedules of
// mutexes: for up to the restart guard, and so usually for longer than the work takes. The
// TTL of some of them is shorter.
func (s *Schedule) periods(dice *world.Dice) {
	cfg := s.Config
	if !cfg.Lock.isMutex() || cfg.Lock.IsMulti() || !cfg.Swarm || cfg.Usual || cfg.drawnFor() != nil || !dice.Chance(160) {
		return
	}
	often := pick(dice, 100, 300, 1000)
	for _, list := range s.Actions {
		for i := range list {
			a := &list[i]
			if !dice.Chance(often) {
				continue
			}
			a.AtLeast = dice.Between(cfg.TTL/2, cfg.TTL).Round(time.Millisecond)
			if dice.Chance(500) {
				a.TTL = max(cfg.TTL/4, 100*time.Millisecond, min(2*cfg.NodeTimeout, cfg.TTL))
			}
		}
	}
}

// overruns gives some callers locks with StopWithin, in a sixth of the schedules. Their work goes
// on when its context has ended: some of it ends in the grace, and some must be stopped.
func (s *Schedule) overruns(dice *world.Dice) {
	cfg := s.Config
	if !cfg.Swarm || cfg.Usual || cfg.drawnFor() != nil || !dice.Chance(160) {
		return
	}
	often := pick(dice, 100, 300, 1000)
	for _, list := range s.Actions {
		for i := range list {
			a := &list[i]
			if a.Resize > 0 || !dice.Chance(often) {
				continue
			}
			shortest := min(cfg.TTLFor(*a), cfg.Extended(*a))
			a.Grace = dice.Between(shortest/50, shortest/4).Round(time.Millisecond)
			a.Overrun = dice.Between(0, 2*shortest)
			if dice.Chance(300) {
				a.Renew, a.Hold = false, max(a.Hold, shortest)
			}
		}
	}
}
