// Package plan has the decisions that are made before a run: the configuration, the actions of
// each client, and the faults.
package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Action is one thing that a caller does: usually it locks, works, writes to the
// storage and unlocks.
type Action struct {
	Think    time.Duration `json:"think,omitempty"`    // how long it waits before it begins
	At       time.Duration `json:"at,omitempty"`       // instead of Think: when it begins, on the client's monotonic clock
	Patience time.Duration `json:"patience,omitempty"` // how long it waits for the lock
	Hold     time.Duration `json:"hold,omitempty"`     // how long the work takes
	Renew    bool          `json:"renew,omitempty"`    // the lease renews itself
	Extend   bool          `json:"extend,omitempty"`   // calls Extend in the middle of the work
	Nested   bool          `json:"nested,omitempty"`   // locks again while it holds the lock
	Cached   bool          `json:"cached,omitempty"`   // leaves the lock in its process
	After    time.Duration `json:"after,omitempty"`    // added to the work, after Extend if there is one

	Lock    string        `json:"lock,omitempty"`    // the name; empty: the only one
	TTL     time.Duration `json:"ttl,omitempty"`     // zero: that of the client
	How     How           `json:"how,omitempty"`     // the method that takes the lock
	Shorten time.Duration `json:"shorten,omitempty"` // what Extend asks for instead of the TTL: less, or more if the TTL is short itself
	Again   bool          `json:"again,omitempty"`   // unlocks a second time
	AtLeast time.Duration `json:"atleast,omitempty"` // the lock is kept for so long; zero: it is not
	Inspect bool          `json:"inspect,omitempty"` // asks who holds the lock
	Grace   time.Duration `json:"grace,omitempty"`   // of StopWithin; zero: the work is not stopped
	Overrun time.Duration `json:"overrun,omitempty"` // for how long the work goes on when its context has ended; with Grace

	Stop func(cause error) `json:"-"` // of StopWithin, while the action is performed

	Names     []string `json:"names,omitempty"`     // of a Multi, instead of Lock
	Read      bool     `json:"read,omitempty"`      // takes a read-write lock to read
	Downgrade bool     `json:"downgrade,omitempty"` // goes on as a reader when the work is done
	Permits   int      `json:"permits,omitempty"`   // of a semaphore; zero: one
	Resize    int      `json:"resize,omitempty"`    // does nothing but Resize to so many permits; zero: no Resize

	Crash  time.Duration `json:"crash,omitempty"`  // how long after it has the lock its client crashes; zero: it does not
	Down   time.Duration `json:"down,omitempty"`   // for how long then
	Ordeal *Ordeal       `json:"ordeal,omitempty"` // of its lease, until it is adopted; nil: none

	Mishap *Mishap `json:"mishap,omitempty"` // goes wrong meanwhile; nil: nothing
}

// How names the method by which an action takes the lock.
type How string

// The methods.
const (
	ByLock    How = ""
	ByTryLock How = "try"
	ByDo      How = "do"
)

// Schedule is everything that is decided before a run: who does what when, and
// what goes wrong. It determines the run to the last bit.
type Schedule struct {
	Seed    uint64     `json:"seed"`
	Dice    uint64     `json:"dice"` // other dice for the network and the clients; zero: those of Seed
	Faults  []Fault    `json:"faults"`
	Actions [][]Action `json:"actions"`         // by caller: caller i belongs to client i modulo the number of clients
	Stops   Stops      `json:"stops,omitempty"` // where code is stopped in the middle, if it is
	Config  *Config    `json:"-"`
}

// Draw makes the schedule of a seed.
func Draw(cfg *Config, seed uint64) *Schedule {
	cfg = cfg.vary(seed)
	s := &Schedule{Seed: seed, Config: cfg}
	if cfg.Script != nil {
		own := *cfg // a script may set its own duration
		s.Config = &own
		s.Faults, s.Actions = cfg.Script(world.NewDice(seed, "script"), &own)
		return s
	}
	s.Faults = someClose(cfg.Faults.draw(world.NewDice(seed, "faults"), cfg), world.NewDice(seed, "close"), cfg)
	s.Faults = centuriesAhead(s.Faults, world.NewDice(seed, "far ahead"), cfg)
	s.Faults = operates(s.Faults, world.NewDice(seed, "operator"), cfg)
	s.Faults = follows(s.Faults, world.NewDice(seed, "replicas"), cfg)
	s.Faults = spreads(s.Faults, world.NewDice(seed, "spread"), cfg)
	s.Faults = lossless(s.Faults, cfg)
	style := world.NewDice(seed, "style")
	pace := style.Spread(cfg.TTL/50, cfg.TTL/2)
	work := style.Spread(cfg.TTL/50, cfg.TTL)
	habits := cfg.drawHabits(world.NewDice(seed, "habits"))
	callers := cfg.Clients
	if cfg.drawnFor() == nil && style.Chance(300) {
		callers *= 2 + style.Below(2) // who wait for each other within one client
	}
	for i := range callers {
		s.Actions = append(s.Actions, habits.actions(world.NewDice(seed, "actions", i), cfg, pace, work))
	}
	s.holdersCrash(world.NewDice(seed, "holders"))
	s.ordeals(world.NewDice(seed, "ordeals"))
	s.mishaps(world.NewDice(seed, "mishaps"))
	s.periods(world.NewDice(seed, "periods"))
	s.overruns(world.NewDice(seed, "overruns"))
	if dice := world.NewDice(seed, "stops"); cfg.Swarm && !cfg.Usual && dice.Chance(500) {
		s.Stops = pick(dice, InTimers, InReplies, InCalls, InRenewals, InAsks)
	}
	return s
}

// actions draws what one caller does.
func (h habits) actions(dice *world.Dice, cfg *Config, pace, work time.Duration) []Action {
	var list []Action
	for at := time.Duration(0); at < cfg.Duration; {
		a := Action{
			Think:    dice.Between(0, 4*pace),
			Patience: dice.Spread(cfg.TTL/4, 8*cfg.TTL),
			Hold:     dice.Between(0, 2*work),
			Renew:    dice.Chance(h.renews),
			Extend:   dice.Chance(h.extends),
			Nested:   cfg.drawnFor() != nil && cfg.drawnFor().Nested && dice.Chance(100),
		}
		if dice.Chance(h.overstays) {
			a.Hold = dice.Between(cfg.TTL, 4*cfg.TTL)
		}
		if cfg.locks > 1 && dice.Chance(500) {
			a.Lock = LockName + strconv.Itoa(1+dice.Below(cfg.locks-1))
		}
		if cfg.mixedTTL && dice.Chance(500) {
			a.TTL = max(dice.Spread(cfg.TTL/20, cfg.TTL), 100*time.Millisecond, min(2*cfg.NodeTimeout, cfg.TTL))
		}
		if dice.Chance(h.brinks) {
			a.Renew, a.Extend = false, false
			a.Hold = max(0, cfg.TTLFor(a)-dice.Spread(time.Millisecond, 2*cfg.NodeTimeout))
		}
		if cfg.everyCall {
			h.varyCalls(&a, dice, cfg)
		}
		h.ofKind(&a, dice, cfg)
		list = append(list, a)
		at += a.Think + a.Hold + cfg.TTL/50
	}
	return list
}

// varyCalls draws which calls other than Lock, Extend and Unlock the action makes.
func (h habits) varyCalls(a *Action, dice *world.Dice, cfg *Config) {
	switch dice.Below(10) {
	case 0, 1:
		a.How = ByTryLock
	case 2:
		a.How = ByDo
	}
	if a.Extend && dice.Chance(h.shortens) {
		a.Shorten = max(cfg.TTL/2, 100*time.Millisecond)
	}
	a.Again = dice.Chance(100)
	a.Inspect = dice.Chance(100)
}

// String lists the faults, and how many actions each caller has.
func (s *Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d faults\n", s.Seed, len(s.Faults))
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "%v\n", f)
	}
	for i, list := range s.Actions {
		if len(list) > 0 {
			fmt.Fprintf(&b, "%s: %d actions\n", CallerName(i, s.Config.Clients), len(list))
		}
	}
	return b.String()
}

// CallerName names the i-th caller. The first of each client is named as the client.
func CallerName(i, clients int) string {
	name := ClientName(i % clients)
	if i >= clients {
		name += "/" + strconv.Itoa(i/clients+1)
	}
	return name
}

func (s *Schedule) Size() int {
	n := len(s.Faults)
	for _, list := range s.Actions {
		n += len(list)
	}
	return n
}

func (s *Schedule) Clone() *Schedule {
	c := *s
	c.Faults = slices.Clone(s.Faults)
	c.Actions = make([][]Action, len(s.Actions))
	for i, list := range s.Actions {
		c.Actions[i] = slices.Clone(list)
	}
	return &c
}

// WithFaults returns the schedule with those of its faults alone.
func (s *Schedule) WithFaults(keep []int) *Schedule {
	c := s.Clone()
	c.Faults = nil
	for _, i := range keep {
		c.Faults = append(c.Faults, s.Faults[i])
	}
	return c
}
