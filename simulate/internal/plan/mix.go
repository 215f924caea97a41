package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Mix says which faults a schedule may have. Every seed draws a few kinds from it,
// so that each kind is tried alone and in any company.
type Mix struct {
	Name  string
	Kinds []Kind
	// Strict keeps the faults within the assumptions of the lock. Masters' clocks
	// are set forward only at a minority, and by more than the clock guard
	// tolerates. Rates differ by no more than the drift factor. A client's wall
	// clock does not hide what its monotonic clock lost.
	Strict bool
	// TailThousandths bounds the share of messages, in thousandths, that are
	// delayed at random, by up to seconds.
	TailThousandths int

	OneClock bool // see OneClock
}

// The mixes.
var (
	// Calm has no faults.
	Calm = Mix{Name: "calm"}
	// Assumed has every fault within the assumptions of the lock. None of them may
	// break a promise in any schedule.
	Assumed = Mix{
		Name:            "assumed",
		Strict:          true,
		TailThousandths: 30,
		Kinds: slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool {
			return k == Evict || k == Delete
		}),
	}
	// Anything has every fault, also the faults that no lock service survives.
	Anything = Mix{Name: "anything", Kinds: Kinds, TailThousandths: 30}
)

// Only returns a mix of the given kinds. It is Strict if Assumed has all of them.
func Only(kinds ...Kind) Mix {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	outside := func(k Kind) bool { return !slices.Contains(Assumed.Kinds, k) }
	return Mix{
		Name: strings.Join(names, ","), Kinds: kinds, TailThousandths: 10,
		Strict: !slices.ContainsFunc(kinds, outside),
	}
}

// listed joins kinds for a message.
func listed[K ~string](kinds []K) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// ParseMix returns the mix of that name, or one of the kinds that s lists,
// separated by commas.
func ParseMix(s string) (Mix, error) {
	for _, m := range []Mix{Calm, Assumed, OneClock, Anything} {
		if s == m.Name {
			return m, nil
		}
	}
	var kinds []Kind
	for k := range strings.SplitSeq(s, ",") {
		if !slices.Contains(Kinds, Kind(k)) {
			return Mix{}, fmt.Errorf("faults %q: must be calm, assumed, one-clock, anything, or kinds separated by commas: %s", s, listed(Kinds))
		}
		kinds = append(kinds, Kind(k))
	}
	return Only(kinds...), nil
}

// Draw returns the faults of one schedule, in the order of their time.
func (m Mix) draw(dice *world.Dice, cfg *Config) []Fault {
	if len(m.Kinds) == 0 {
		return nil
	}
	some := make([]Kind, 1+dice.Below(min(6, len(m.Kinds))))
	for i := range some {
		some[i] = m.Kinds[dice.Below(len(m.Kinds))]
	}
	gap := dice.Spread(cfg.TTL, 16*cfg.TTL)
	var faults []Fault
	for at := dice.Between(0, gap); at < cfg.Duration; at += dice.Between(0, 2*gap) {
		faults = append(faults, m.one(some[dice.Below(len(some))], at, dice, cfg))
	}
	if m.OneClock {
		return m.wrongClock(faults, dice, cfg)
	}
	if m.Strict {
		m.oneLie(faults)
		if dice.Chance(500) && cfg.watchesClocks() {
			faults = forward(faults, dice, cfg)
		}
	}
	return faults
}

// watchesClocks reports whether clients notice when a master's clock is set forward.
func (cfg *Config) watchesClocks() bool {
	return cfg.ClockGuard > 0 && cfg.RestartGuard > 0 && cfg.drawnFor() == nil
}

// forward turns every step of a master's clock into a step forward, by more than a client puts
// down to delay and drift. Only a minority of the masters is stepped: a new client has no other
// way to find out which clocks are wrong. No clock freezes, since a clock that was behind would
// hide its step forward.
func forward(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == Step }) {
		return faults
	}
	guard := cfg.Guard(0)
	window := max(guard.Hold, 4*guard.ClockTolerance)
	least := guard.ClockTolerance + window/20 + 4*time.Second // a client may read its baseline that late
	size := cfg.GroupSize()
	first, some := dice.Below(cfg.Nodes), (size-1)/2
	if some == 0 {
		return faults
	}
	for i := range faults {
		if f := &faults[i]; f.Kind == Step {
			f.Size = least + max(f.Size, -f.Size)
			f.Node = first/size*size + (first+f.Node%some)%size // of one group, if there are several
		}
	}
	return slices.DeleteFunc(faults, func(f Fault) bool { return f.Kind == Freeze })
}

// one draws a fault of the given kind.
func (m Mix) one(k Kind, at time.Duration, dice *world.Dice, cfg *Config) Fault {
	ttl := cfg.TTL
	f := Fault{
		Kind:   k,
		At:     at,
		For:    dice.Spread(ttl/20, 5*ttl),
		Node:   dice.Below(cfg.Nodes),
		Client: dice.Below(cfg.Clients),
	}
	switch k {
	case Restart, RestartEmpty:
		f.Silent = dice.Chance(200)
	case RestartSnapshot, RestartPartial:
		f.Size = dice.Spread(ttl/10, 4*ttl)
	case Failover:
		f.Size = dice.Spread(ttl/50, 2*ttl)
		f.For = dice.Between(0, ttl/10)
	case Slow:
		f.Size = dice.Spread(ttl/100, ttl)
	case Reset, Flush, Evict, Delete:
		f.For = 0
	case CutOut, CutIn, Partition:
		// Half of them cut off a whole machine.
		switch dice.Below(4) {
		case 0:
			f.Node = -1
		case 1:
			f.Client = -1
		}
	case Errors:
		codes := []string{"MISCONF", "READONLY", "OOM", "LOADING", "BUSY", "NOREPLICAS"}
		if !cfg.Usual {
			codes = append(codes, Odd, Odd, Odd, Odd)
		}
		f.Code = codes[dice.Below(len(codes))]
	case Step:
		f.For = 0
		f.Size = dice.Spread(ttl/10, 5*ttl)
		if m.Strict || dice.Chance(300) {
			f.Size = -f.Size
		}
		if !m.Strict && dice.Chance(100) {
			f.Node = -1
		}
	case Rate, ClientRate:
		f.Rate = dice.Below(10_001) - 5000 // the two extremes differ by the drift factor
		if !m.Strict {
			f.Rate = []int{-500_000, -50_000, 50_000, 1_000_000}[dice.Below(4)]
		}
	case ClientStep:
		f.For = 0
		f.Size = dice.Spread(ttl/10, 5*ttl)
		if dice.Chance(500) {
			f.Size = -f.Size
		}
	}
	return f
}

// centuriesAhead has the clock of one client say 2255, in some schedules with fencing tokens: in
// microseconds that is 2^53, from which on numbers of Lua do not count in ones.
func centuriesAhead(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	switch cfg.Lock {
	case FencedLock, FencedSemaphoreLock: // of the others tickets have that clock, too
	default:
		return faults
	}
	if cfg.Usual || cfg.drawnFor() != nil || !slices.Contains(cfg.Faults.Kinds, ClientStep) || !dice.Chance(150) {
		return faults
	}
	year2255 := time.UnixMicro(1 << 53).Sub(world.Epoch)
	return byTime(append(faults, Fault{
		Kind: ClientStep, Node: -1, Client: dice.Below(cfg.Clients), Size: year2255 + dice.Between(0, time.Hour),
	}))
}

// oneLie keeps clients' wall clocks from being set back where a client is
// suspended: that would hide what its monotonic clock lost.
func (m Mix) oneLie(faults []Fault) {
	suspends := slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == ClientSuspend })
	for i, f := range faults {
		if suspends && f.Kind == ClientStep {
			faults[i].Size = max(f.Size, -f.Size)
		}
	}
}

// MixNamed returns the mix of that name. For an unknown name it has just the name.
func MixNamed(name string) Mix {
	if m, err := ParseMix(name); err == nil {
		return m
	}
	return Mix{Name: name}
}

// Odd is the code of a server whose answers do not belong to the questions, as the answers of a
// proxy may not. The server runs a command, or does not.
const Odd = "ODD"
