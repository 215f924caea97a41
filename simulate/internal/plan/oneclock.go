package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// OneClock has one wrong clock in each schedule, chosen by the schedule's seed: the clock of a
// master, or of a client that may hold the lock or want it. The steps and rates of that clock
// are drawn around the bounds that clients go by. They usually strike just after a client has
// got the lock, and that client is then cut off. All clients are cut off from different
// masters, so that two clients may have only the master with the wrong clock in common.
//
// A client's wall clock does anything, and its monotonic clock has a constant rate of its own:
// a holder that gets no answers cannot notice that its only clock slows down.
var OneClock = Mix{
	Name:     "one-clock",
	Strict:   true,
	Kinds:    []Kind{Pause, Slow, Reset, CutOut, CutIn, Partition, ClientCrash, ClientPause},
	OneClock: true,
}

// Grantee is the client of a fault that strikes the client that gets the lock.
const Grantee = -2

// wrongClock adds the faults of the wrong clock, and the faults that make it hurt.
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
			// A client starts or goes on just afterwards, and has not seen the change.
			f.Kind, f.Node, f.Client = pick(dice, ClientCrash, ClientPause), -1, dice.Below(cfg.Clients)
			f.For = dice.Spread(time.Millisecond, cfg.TTL/2)
			f.After = max(0, f.After-dice.Between(0, f.For))
			faults = append(faults, f)
		}
	}
	if dice.Chance(400) {
		faults = onTheEdge(faults, dice, cfg, master, client)
	} else if client < 0 && dice.Chance(200) {
		faults = backAndForth(faults, dice, cfg, master)
	} else if client < 0 && dice.Chance(150) {
		faults = lateQuestions(faults, dice, cfg, master)
	}
	return byTime(faults)
}

// lateQuestions has a master's clock set forward while a holder is cut off. Another client starts anew before the
// holder's lease is over, and its first question to one more master is late (S86). Only the partitions that last
// to the end are kept.
func lateQuestions(faults []Fault, dice *world.Dice, cfg *Config, master int) []Fault {
	faults = lasting(faults, cfg)
	for at := dice.Between(0, cfg.TTL); at < cfg.Duration; at += dice.Between(2*cfg.TTL, 5*cfg.TTL) {
		step := dice.Between(drift.Unnoticed, cfg.TTL/2)
		client, comes := dice.Below(cfg.Clients), cfg.TTL-dice.Between(step/2, 2*step)
		faults = append(faults,
			Fault{Kind: ClientCrash, At: at, Held: true, For: max(time.Millisecond, comes), Client: client, Node: -1},
			Fault{Kind: Partition, At: at, Held: true, After: dice.Spread(time.Microsecond, cfg.TTL/50), For: 2 * cfg.TTL, Client: Grantee, Node: -1},
			Fault{Kind: Step, At: at, Held: true, After: dice.Between(0, cfg.TTL/2), Client: -1, Node: master, Size: step})
		if late := dice.Below(cfg.Nodes); late != master {
			faults = append(faults, Fault{Kind: Pause, At: at, Held: true, After: max(0, comes-step), For: step + dice.Between(0, cfg.TTL/4), Client: -1, Node: late})
		}
	}
	return faults
}

// backAndForth has a master's clock go back before a client gets the lock, and come forward
// afterwards. Another client stands still meanwhile, and so it sees neither (S59). Only
// the partitions that last to the end are kept. The clock does not go back again before all
// clients know that it came forward: that would be a blink (S69).
func backAndForth(faults []Fault, dice *world.Dice, cfg *Config, master int) []Fault {
	faults = lasting(faults, cfg)
	for at := dice.Between(0, cfg.TTL); at < cfg.Duration; at += 2*guard.HeardWithin + dice.Between(cfg.TTL, 5*cfg.TTL) {
		size := dice.Between(cfg.TTL/4, cfg.TTL)
		faults = append(faults,
			Fault{Kind: ClientPause, At: at, For: dice.Between(cfg.TTL/2, 2*cfg.TTL), Client: dice.Below(cfg.Clients), Node: -1},
			Fault{Kind: Step, At: at, Client: -1, Node: master, Size: -size},
			Fault{Kind: Partition, At: at, Held: true, After: dice.Spread(time.Microsecond, cfg.TTL/50), For: 2 * cfg.TTL, Client: Grantee, Node: -1},
			Fault{Kind: Step, At: at, Held: true, After: dice.Between(0, cfg.TTL/2), Client: -1, Node: master, Size: size})
	}
	return faults
}

// lasting keeps only the partitions that last to the end.
func lasting(faults []Fault, cfg *Config) []Fault {
	return slices.DeleteFunc(faults, func(f Fault) bool { return f.Kind != Partition || f.For < cfg.Duration })
}

// onTheEdge keeps only the partitions that last to the end, and adds faults that only just
// hurt. A holder is cut off, and another client that has not looked for long goes on when the
// validity is about to end. Meanwhile the master's clock is set forward by about the step that
// may stay unnoticed. Or a client starts anew with a clock that is slower than allowed.
func onTheEdge(faults []Fault, dice *world.Dice, cfg *Config, master, client int) []Fault {
	faults = lasting(faults, cfg)
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
		step := dice.Between(drift.Tolerance/2, drift.Unnoticed) // unnoticed, or
		if dice.Chance(500) {
			step = dice.Between(drift.Unnoticed, 2*drift.Unnoticed) // perhaps noticed
		}
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

// wrongSize draws a step, usually around the steps that clients notice and the time that they
// give up.
func wrongSize(dice *world.Dice, cfg *Config) time.Duration {
	given := drift.Allowance(cfg.TTL, drift.DefaultFactor) + drift.Unnoticed
	d := pick(dice, dice.Spread(time.Millisecond, 3*cfg.TTL), dice.Between(given/2, 3*given),
		dice.Between(drift.Tolerance/2, 3*drift.Unnoticed), dice.Between(cfg.TTL/2, cfg.TTL))
	if dice.Chance(350) {
		return -d
	}
	return d
}

// wrongRate draws a rate, in millionths, usually around the rates that clients bear.
func wrongRate(dice *world.Dice) int {
	rate := pick(dice, int(dice.Between(500, 9_000)), int(dice.Between(9_000, 20_000)), int(dice.Between(20_000, 100_000)), int(dice.Between(100_000, 900_000)))
	if dice.Chance(400) {
		return -rate
	}
	return rate
}
