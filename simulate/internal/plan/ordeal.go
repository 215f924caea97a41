package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Ordeal is a series of faults between the crash of a lease's holder and the adoption of the
// lease. A minority of the masters forgets the lease, and another master hangs just when the
// holder asks. Then fewer than a quorum report the lease that a quorum has.
type Ordeal struct {
	Forget []int         `json:"forget,omitempty"` // masters that restart empty when the client has crashed
	Down   time.Duration `json:"down,omitempty"`   // for how long they are down
	Hangs  int           `json:"hangs"`            // the master that hangs when the client is back
	For    time.Duration `json:"for,omitempty"`    // and for how long
}

// ordeals gives some leases whose holders crash an ordeal.
func (s *Schedule) ordeals(dice *world.Dice) {
	cfg := s.Config
	if !cfg.Adopts || cfg.Usual || !dice.Chance(500) ||
		!slices.Contains(cfg.Faults.Kinds, RestartEmpty) || !slices.Contains(cfg.Faults.Kinds, Pause) {
		return
	}
	for _, list := range s.Actions {
		for i := range list {
			if list[i].Crash > 0 && dice.Chance(600) {
				list[i].Ordeal = cfg.ordeal(dice)
			}
		}
	}
}

func (cfg *Config) ordeal(dice *world.Dice) *Ordeal {
	first := dice.Below(cfg.Nodes)
	o := &Ordeal{
		Down:  dice.Spread(100*time.Microsecond, cfg.TTL/100),
		Hangs: first,
		For:   dice.Between(cfg.NodeTimeout*3/4, 2*cfg.NodeTimeout),
	}
	for i := range (cfg.Nodes - 1) / 2 {
		o.Forget = append(o.Forget, (first+1+i)%cfg.Nodes)
	}
	return o
}

// holdersCrash lets some callers crash while they hold a lock, if leases are adopted. Callers
// that crash at any time seldom hold a lock, and are back in time for its adoption even less
// often.
func (s *Schedule) holdersCrash(dice *world.Dice) {
	cfg := s.Config
	if !cfg.Adopts || cfg.Usual || !slices.Contains(cfg.Faults.Kinds, ClientCrash) {
		return
	}
	for _, list := range s.Actions {
		for i := range list {
			if a := &list[i]; dice.Chance(50) {
				a.Crash, a.Down = dice.Between(1, a.Hold+1), dice.Spread(cfg.TTL/100, cfg.TTL/2)
			}
		}
	}
}
