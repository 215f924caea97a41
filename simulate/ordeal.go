package simulate

import (
	"slices"
	"time"
)

// Ordeal is what goes wrong with a lease between the crash of its holder and its
// adoption: a minority of the masters forgets it, and one of the others hangs just when
// the holder asks them. Then fewer than a quorum tell of the lease that a quorum has.
type Ordeal struct {
	Forget []int         `json:"forget,omitempty"` // masters that restart empty when the client has crashed
	Down   time.Duration `json:"down,omitempty"`   // for how long they are down
	Hangs  int           `json:"hangs"`            // the master that hangs when the client is back
	For    time.Duration `json:"for,omitempty"`    // and for how long
}

// ordeals gives some leases whose holders crash an ordeal.
func (s *Schedule) ordeals(dice *stream) {
	cfg := s.config
	if !cfg.adopts || cfg.usual || !dice.chance(500) ||
		!slices.Contains(cfg.Faults.Kinds, RestartEmpty) || !slices.Contains(cfg.Faults.Kinds, Pause) {
		return
	}
	for _, list := range s.Actions {
		for i := range list {
			if list[i].Crash > 0 && dice.chance(600) {
				list[i].Ordeal = cfg.ordeal(dice)
			}
		}
	}
}

func (cfg *Config) ordeal(dice *stream) *Ordeal {
	first := dice.below(cfg.Nodes)
	o := &Ordeal{
		Down:  dice.spread(100*time.Microsecond, cfg.TTL/100),
		Hangs: first,
		For:   dice.between(cfg.nodeTimeout*3/4, 2*cfg.nodeTimeout),
	}
	for i := range (cfg.Nodes - 1) / 2 {
		o.Forget = append(o.Forget, (first+1+i)%cfg.Nodes)
	}
	return o
}

// forgets has the masters forget the lease.
func (t *trial) forgets(o *Ordeal) {
	if o == nil {
		return
	}
	for _, node := range o.Forget {
		t.strike(&Fault{Kind: RestartEmpty, At: t.world.now, For: o.Down, Node: node % len(t.masters), Client: -1})
	}
}

// hangs has one of the others hang.
func (t *trial) hangs(o *Ordeal) {
	if o != nil && !t.healed {
		t.strike(&Fault{Kind: Pause, At: t.world.now, For: o.For, Node: o.Hangs % len(t.masters), Client: -1})
	}
}
