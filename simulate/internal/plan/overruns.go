package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

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
