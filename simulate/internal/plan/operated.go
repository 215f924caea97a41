package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// someClose adds clients that close to the faults of a schedule, in half of those where
// clients crash.
func someClose(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	if !slices.Contains(cfg.Faults.Kinds, ClientCrash) || cfg.drawnFor() != nil || !dice.Chance(500) {
		return faults
	}
	for range 1 + dice.Below(5) {
		f := cfg.Faults.one(ClientCrash, dice.Between(0, cfg.Duration), dice, cfg)
		f.Closes = true
		faults = append(faults, f)
	}
	return byTime(faults)
}

// operates adds the actions of the operator: in some schedules, an Init just after masters have
// lost their memory, and usually before a client has seen the loss.
func operates(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	if cfg.drawnFor() != nil || cfg.RestartGuard <= 0 || !dice.Chance(300) {
		return faults
	}
	for _, f := range slices.Clone(faults) {
		if (f.Kind == RestartEmpty || f.Kind == Flush) && dice.Chance(800) {
			faults = append(faults, Fault{Kind: Init, At: f.At + f.For + dice.Spread(time.Microsecond, 20*time.Millisecond), Node: -1, Client: -1})
		}
	}
	return byTime(faults)
}

// follows adds the actions of another operator: in some schedules, masters become replicas of
// servers that were copies of them, and masters again, without a restart (S50).
func follows(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	if cfg.drawnFor() != nil || cfg.RestartGuard <= 0 || !slices.Contains(cfg.Faults.Kinds, Failover) || !dice.Chance(150) {
		return faults
	}
	for range 1 + dice.Below(3) {
		faults = append(faults, Fault{
			Kind: Follow, Node: dice.Below(cfg.Nodes), Client: -1, At: dice.Between(0, cfg.Duration),
			For: dice.Spread(5*time.Millisecond, cfg.TTL), Size: dice.Spread(cfg.TTL/50, 2*cfg.TTL),
		})
	}
	return byTime(faults)
}

// Operated reports whether the schedule has an operator whose masters are in use: they
// were declared new long before it begins.
func (s *Schedule) Operated() bool {
	return s.Config.Script == nil && slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Init })
}

// lossless has durable masters lose nothing when they restart. So none was a replica within a guard
// before: the restart leaves no trace of that, and perhaps no client has looked in between.
func lossless(faults []Fault, cfg *Config) []Fault {
	if !cfg.Durable {
		return faults
	}
	for i, f := range faults {
		switch f.Kind {
		case RestartPartial, RestartSnapshot, Failover:
			faults[i].Kind = Restart
		}
	}
	return slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool {
		return f.Kind == Follow && slices.ContainsFunc(faults, func(o Fault) bool {
			return o.Kind == Restart && o.Node == f.Node && o.At >= f.At && o.At <= f.At+f.For+cfg.RestartGuard
		})
	})
}
