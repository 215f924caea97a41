package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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
	After    time.Duration `json:"after,omitempty"`    // added to the work, after Extend if there is one

	Lock    string        `json:"lock,omitempty"`    // the name; empty: the only one
	TTL     time.Duration `json:"ttl,omitempty"`     // zero: that of the client
	How     How           `json:"how,omitempty"`     // the method that takes the lock
	Shorten time.Duration `json:"shorten,omitempty"` // what Extend asks for instead of the TTL: less, or more if the TTL is short itself
	Again   bool          `json:"again,omitempty"`   // unlocks a second time
	Inspect bool          `json:"inspect,omitempty"` // asks who holds the lock

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
	config  *Config
}

// draw makes the schedule of a seed.
func draw(cfg *Config, seed uint64) *Schedule {
	cfg = cfg.vary(seed)
	s := &Schedule{Seed: seed, config: cfg}
	if cfg.script != nil {
		own := *cfg // a script may set its own duration
		s.config = &own
		s.Faults, s.Actions = cfg.script(newStream(seed, "script"), &own)
		return s
	}
	s.Faults = someClose(cfg.Faults.draw(newStream(seed, "faults"), cfg), newStream(seed, "close"), cfg)
	s.Faults = centuriesAhead(s.Faults, newStream(seed, "far ahead"), cfg)
	s.Faults = operates(s.Faults, newStream(seed, "operator"), cfg)
	s.Faults = follows(s.Faults, newStream(seed, "replicas"), cfg)
	s.Faults = lossless(s.Faults, cfg)
	style := newStream(seed, "style")
	pace := style.spread(cfg.TTL/50, cfg.TTL/2)
	work := style.spread(cfg.TTL/50, cfg.TTL)
	habits := cfg.drawHabits(newStream(seed, "habits"))
	callers := cfg.Clients
	if cfg.drawnFor() == nil && style.chance(300) {
		callers *= 2 + style.below(2) // who wait for each other within one client
	}
	for i := range callers {
		s.Actions = append(s.Actions, habits.actions(newStream(seed, "actions", i), cfg, pace, work))
	}
	s.holdersCrash(newStream(seed, "holders"))
	s.ordeals(newStream(seed, "ordeals"))
	s.mishaps(newStream(seed, "mishaps"))
	if dice := newStream(seed, "stops"); cfg.Swarm && !cfg.usual && dice.chance(500) {
		s.Stops = pick(dice, InTimers, InReplies, InCalls, InRenewals, InAsks)
	}
	return s
}

// actions draws what one caller does.
func (h habits) actions(dice *stream, cfg *Config, pace, work time.Duration) []Action {
	var list []Action
	for at := time.Duration(0); at < cfg.Duration; {
		a := Action{
			Think:    dice.between(0, 4*pace),
			Patience: dice.spread(cfg.TTL/4, 8*cfg.TTL),
			Hold:     dice.between(0, 2*work),
			Renew:    dice.chance(h.renews),
			Extend:   dice.chance(h.extends),
			Nested:   cfg.drawnFor() != nil && cfg.drawnFor().nested && dice.chance(100),
		}
		if dice.chance(h.overstays) {
			a.Hold = dice.between(cfg.TTL, 4*cfg.TTL)
		}
		if cfg.locks > 1 && dice.chance(500) {
			a.Lock = lockName + strconv.Itoa(1+dice.below(cfg.locks-1))
		}
		if cfg.mixedTTL && dice.chance(500) {
			a.TTL = max(dice.spread(cfg.TTL/20, cfg.TTL), 100*time.Millisecond, min(2*cfg.nodeTimeout, cfg.TTL))
		}
		if dice.chance(h.brinks) {
			a.Renew, a.Extend = false, false
			a.Hold = max(0, cfg.ttl(a)-dice.spread(time.Millisecond, 2*cfg.nodeTimeout))
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
func (h habits) varyCalls(a *Action, dice *stream, cfg *Config) {
	switch dice.below(10) {
	case 0, 1:
		a.How = ByTryLock
	case 2:
		a.How = ByDo
	}
	if a.Extend && dice.chance(h.shortens) {
		a.Shorten = max(cfg.TTL/2, 100*time.Millisecond)
	}
	a.Again = dice.chance(100)
	a.Inspect = dice.chance(100)
}

// latency draws how good the network is.
func (s *Schedule) latency() latency {
	dice := newStream(s.Seed, "latency") // without Dice: other dice do not make another network
	// Nobody gets a lock that ends before the answers are back.
	far := min(4*time.Millisecond, s.config.TTL/50, s.config.nodeTimeout/12)
	l := latency{base: dice.spread(min(far, 100*time.Microsecond), far), max: 3 * time.Second}
	if tail := s.config.Faults.TailThousandths; tail > 0 && dice.chance(500) {
		l.tail = 1 + dice.below(tail)
	}
	return l
}

// preemption draws how often code is stopped in the middle.
func (s *Schedule) preemption() preemption {
	dice := newStream(s.Seed, "preemption")
	every := s.config.stops
	if s.config.drawnFor() != nil || every == 0 && dice.chance(500) {
		return preemption{}
	}
	p := preemption{
		every:   every,
		where:   s.Stops,
		short:   min(4*time.Millisecond, s.config.TTL/50),
		long:    2 * s.config.TTL,
		longOdd: 30,
	}
	if stalls := newStream(s.Seed, "stalls"); every == 0 && slices.Contains(s.config.Faults.Kinds, ClientPause) && stalls.chance(500) {
		p.stalls = 100
		if s.Stops == InRenewals {
			p.stalls = 400 // there are few, and it takes one in just the right place
		}
	}
	switch {
	case every > 0:
	case s.Stops == Everywhere:
		p.every = int(dice.spread(30, 3000))
	case s.Stops == InRenewals || s.Stops == InAsks:
		p.every, p.longOdd = int(dice.spread(2, 60)), 300
	default: // there are fewer steps
		p.every, p.longOdd = int(dice.spread(4, 400)), 100
	}
	return p
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
			fmt.Fprintf(&b, "%s: %d actions\n", callerName(i, s.config.Clients), len(list))
		}
	}
	return b.String()
}

// callerName names the i-th caller. The first of each client is named as the client.
func callerName(i, clients int) string {
	name := clientName(i % clients)
	if i >= clients {
		name += "/" + strconv.Itoa(i/clients+1)
	}
	return name
}
