package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Mishap is something that goes wrong at a client just when it is in a call, or holds a
// lock. Faults that may come at any time seldom come then.
type Mishap struct {
	Kind  Kind          `json:"kind"`
	In    Moment        `json:"in"`
	After time.Duration `json:"after,omitempty"` // since that began
	For   time.Duration `json:"for,omitempty"`
	Size  time.Duration `json:"size,omitempty"` // of a step or a delay

	Silent bool `json:"silent,omitempty"` // meanwhile no master answers in time
}

// Moment is what a caller does.
type Moment string

// The moments of an action.
const (
	WhileLocking   Moment = "lock"
	WhileHolding   Moment = "hold"
	WhileExtending Moment = "extend"
	WhileUnlocking Moment = "unlock"
)

// mishaps gives some actions of a schedule a mishap, of one kind that the mix has.
func (s *Schedule) mishaps(dice *world.Dice) {
	cfg := s.Config
	if !cfg.Swarm || cfg.Usual || cfg.drawnFor() != nil || !dice.Chance(500) {
		return
	}
	kinds := slices.DeleteFunc([]Kind{ClientPause, ClientSuspend, ClientStep, ClientCrash, Slow}, func(k Kind) bool {
		return !slices.Contains(cfg.Faults.Kinds, k) || s.wouldHide(k)
	})
	if len(kinds) == 0 {
		return
	}
	kind := pick(dice, kinds...)
	for _, list := range s.Actions {
		for i := range list {
			if dice.Chance(150) {
				list[i].Mishap = cfg.mishap(kind, &list[i], dice)
			}
		}
	}
}

// wouldHide reports whether faults of this kind, and others of the schedule, would have
// the wall clock of a client hide what its monotonic clock has lost.
func (s *Schedule) wouldHide(kind Kind) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return kind == ClientStep && f.Kind == ClientSuspend || kind == ClientSuspend && f.Kind == ClientStep && f.Size < 0
	})
}

// mishap draws one.
func (cfg *Config) mishap(kind Kind, a *Action, dice *world.Dice) *Mishap {
	m := &Mishap{
		Kind: kind, In: pick(dice, WhileLocking, WhileHolding, WhileExtending, WhileUnlocking),
		After: dice.Spread(10*time.Microsecond, cfg.NodeTimeout),
		For:   dice.Spread(cfg.NodeTimeout, 3*cfg.TTL),
	}
	switch {
	case m.In == WhileHolding && kind == ClientSuspend && dice.Chance(500):
		// No timer is due for long, and the lease ends in the middle of the sleep.
		a.Renew, a.Extend, a.Hold = false, false, max(a.Hold, cfg.TTLFor(*a))
		m.After, m.For = dice.Between(0, cfg.TTLFor(*a)/4), dice.Between(cfg.TTLFor(*a), 3*cfg.TTL)
	case m.In == WhileHolding:
		m.After = dice.Between(0, a.Hold)
	case m.In == WhileExtending:
		a.Extend = true
		if dice.Chance(500) {
			m.After = 0
		}
	}
	switch kind {
	case ClientStep: // forward, and back again
		m.For, m.Size = dice.Spread(100*time.Microsecond, 2*cfg.NodeTimeout), dice.Spread(cfg.NodeTimeout/2, 2*cfg.TTL)
		m.Silent = m.In != WhileHolding && dice.Chance(300) && slices.Contains(cfg.Faults.Kinds, Pause)
	case ClientCrash: // in good order
		m.For = dice.Spread(cfg.TTL/100, cfg.TTL/2)
	case Slow: // and the lease ends while its release is on its way
		ttl := cfg.TTLFor(*a)
		a.Renew, a.Extend = false, false
		a.Hold = max(0, ttl-ttl/80-2*time.Millisecond-min(ttl/50, 20*time.Millisecond)-dice.Spread(100*time.Microsecond, cfg.NodeTimeout/4))
		m.In, m.After, m.For, m.Size = WhileUnlocking, 0, cfg.NodeTimeout, dice.Between(cfg.NodeTimeout/4, cfg.NodeTimeout/2)
	}
	return m
}
