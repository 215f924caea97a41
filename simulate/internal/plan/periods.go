package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

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
