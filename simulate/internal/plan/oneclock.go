package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// OneClock has one wrong clock in each schedule, chosen by its seed: a master's or a
// client's, which may hold the lock or want it. What it does is drawn around the bounds that
// clients go by, and mostly just after somebody has got the lock, who is cut off then. All
// clients are cut off from different masters, so that two of them may have only the master
// in common whose clock is wrong.
//
// A client's wall clock does anything, and its monotonic clock has a rate of its own: no
// holder can tell that its only clock slows down when nobody answers it any more.
var OneClock = Mix{
	Name:     "one-clock",
	Strict:   true,
	Kinds:    []Kind{Pause, Slow, Reset, CutOut, CutIn, Partition, ClientCrash, ClientPause},
	OneClock: true,
}

// Grantee is the client of a fault that strikes the one who gets the lock.
const Grantee = -2

// wrongClock adds what the wrong clock does, and what makes that hurt.
func (m Mix) wrongClock(faults []Fault, dice *world.Dice, cfg *Config) []Fault {
	master, client := dice.Below(cfg.Nodes), -1
	if dice.Chance(300) {
		client = dice.Below(cfg.Clients)
	}
	minority := (cfg.Nodes - 1) / 2
	for c := range cfg.Clients {
		if dice.Chance(200) {
			continue
		}
		first := dice.Below(cfg.Nodes)
		for i, cut := 0, 0; i < cfg.Nodes && cut < minority; i++ {
			if n := (first + i) % cfg.Nodes; n != master {
				cut++
				faults = append(faults, Fault{Kind: Partition, At: dice.Between(0, cfg.TTL), For: cfg.Duration, Client: c, Node: n})
			}
		}
	}
	if client >= 0 {
		faults = append(faults, Fault{Kind: ClientRate, For: cfg.Duration, Client: client, Node: -1, Rate: wrongRate(dice)})
	}
	gap := dice.Spread(cfg.TTL, 16*cfg.TTL)
	for at := dice.Between(0, gap); at < cfg.Duration; at += dice.Between(0, 2*gap) {
		f := Fault{At: at, Node: master, Client: client}
		if dice.Chance(700) {
			f.Held, f.After = true, dice.Spread(time.Microsecond, cfg.TTL)
			faults = append(faults, Fault{Kind: Partition, At: at, Held: true, After: dice.Spread(time.Microsecond, cfg.TTL/20),
				For: dice.Spread(cfg.TTL/2, 2*cfg.TTL), Client: Grantee, Node: -1})
		}
		switch {
		case client >= 0:
			f.Kind, f.Node, f.Size = ClientStep, -1, wrongSize(dice, cfg)
		case dice.Chance(500):
			f.Kind, f.Size = Step, wrongSize(dice, cfg)
		case dice.Chance(800):
			f.Kind, f.Rate, f.For = Rate, wrongRate(dice), dice.Spread(cfg.TTL/4, 5*cfg.TTL)
		default:
			f.Kind, f.For = Freeze, dice.Spread(cfg.TTL/4, 5*cfg.TTL)
		}
		faults = append(faults, f)
		if f.Held && dice.Chance(400) {
			// Somebody comes, or goes on, just afterwards, and has not seen it.
			f.Kind, f.Node, f.Client = pick(dice, ClientCrash, ClientPause), -1, dice.Below(cfg.Clients)
			f.For = dice.Spread(time.Millisecond, cfg.TTL/2)
			f.After = max(0, f.After-dice.Between(0, f.For))
			faults = append(faults, f)
		}
	}
	if dice.Chance(400) {
		faults = onTheEdge(faults, dice, cfg, master, client)
	}
	return byTime(faults)
}

// onTheEdge leaves of the faults that clients are cut off for good, and adds what hurts only
// just. A holder is cut off, and another client that has not looked for long goes on when the
// validity is about to end. Meanwhile the master's clock is set forward by what may stay
// unnoticed, a little less or more. Or a client is new whose clock is slower than allowed.
func onTheEdge(faults []Fault, dice *world.Dice, cfg *Config, master, client int) []Fault {
	faults = slices.DeleteFunc(faults, func(f Fault) bool { return f.Kind != Partition || f.For < cfg.Duration })
	if client >= 0 {
		slow := pick(dice, dice.Between(10_000, 20_000), dice.Between(20_000, 120_000))
		faults = append(faults, Fault{Kind: ClientRate, For: cfg.Duration, Client: client, Node: -1, Rate: -int(slow)})
	}
	for at := dice.Between(0, cfg.TTL); at < cfg.Duration; at += dice.Between(cfg.TTL, 5*cfg.TTL) {
		if client >= 0 {
			down := dice.Spread(time.Millisecond, 2*cfg.TTL)
			faults = append(faults, Fault{Kind: ClientCrash, At: at, For: down, Client: client, Node: -1},
				Fault{Kind: Partition, At: at + down + dice.Between(5*time.Millisecond, cfg.TTL), For: 2 * cfg.TTL, Client: client, Node: -1})
			continue
		}
		step := dice.Between(drift.Tolerance, drift.Unnoticed+2*drift.Tolerance)
		comes := Fault{Kind: ClientPause, At: at, Held: true, For: cfg.TTL - dice.Between(0, step), Client: dice.Below(cfg.Clients), Node: -1}
		switch dice.Below(3) {
		case 0: // it is new
			comes.Kind = ClientCrash
		case 1: // it has not looked for as long as it may
			comes.Held, comes.For = false, guard.HeardWithin-dice.Between(0, guard.HeardWithin/4)
			at += max(0, comes.For-cfg.TTL-dice.Between(0, cfg.TTL/2))
		}
		faults = append(faults, comes,
			Fault{Kind: Partition, At: at, Held: true, After: dice.Spread(time.Microsecond, cfg.TTL/50), For: 2 * cfg.TTL, Client: Grantee, Node: -1},
			Fault{Kind: Step, At: at, Held: true, After: dice.Between(0, cfg.TTL-step), Client: -1, Node: master, Size: step})
	}
	return faults
}

// wrongSize draws a step, mostly around what clients notice and what they give up.
func wrongSize(dice *world.Dice, cfg *Config) time.Duration {
	given := drift.Allowance(cfg.TTL, drift.DefaultFactor) + drift.Unnoticed
	d := pick(dice, dice.Spread(time.Millisecond, 3*cfg.TTL), dice.Between(given/2, 3*given),
		dice.Between(drift.Tolerance/2, 3*drift.Unnoticed), dice.Between(cfg.TTL/2, cfg.TTL))
	if dice.Chance(350) {
		return -d
	}
	return d
}

// wrongRate draws a rate, in millionths, mostly around what clients bear.
func wrongRate(dice *world.Dice) int {
	rate := pick(dice, int(dice.Between(500, 9_000)), int(dice.Between(9_000, 20_000)), int(dice.Between(20_000, 100_000)), int(dice.Between(100_000, 900_000)))
	if dice.Chance(400) {
		return -rate
	}
	return rate
}
