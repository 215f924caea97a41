package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// Config describes a simulation. The zero Config is 1,000 schedules of five
// masters, three clients, a TTL of one second and one minute, with every fault
// within the assumptions.
type Config struct {
	Nodes    int           // masters; 5 if zero
	Clients  int           // 3 if zero
	TTL      time.Duration // of the locks; 1s if zero
	Duration time.Duration // of the part with faults; 60s if zero
	Faults   Mix           // Assumed if it is the zero Mix
	Seed     uint64        // of the first schedule; the others count up
	Seeds    int           // how many schedules; 1,000 if zero
	Workers  int           // how many run at once; one for each core if zero
	FailFast bool          // end with the first schedule in which a promise breaks
	Lock     LockKind      // PlainLock if empty

	// RestartGuard is for how long a master that came back without its memory
	// may not grant. Zero: as long as the TTL. Negative: off.
	RestartGuard time.Duration
	// ClockGuard is by how much a master's clock may step before it may not
	// grant. Zero: redlock.DefaultClockGuard. Negative: off.
	ClockGuard time.Duration
	// Transport is what connects clients with masters; Fast if empty.
	Transport Transport
	// Options are given to every redlock.Client. Client id, clock, logger,
	// observer and seams are the simulation's own.
	Options []redlock.Option
	// Interrupt, if it is closed, ends the run early: the report is then of the
	// schedules that were run.
	Interrupt <-chan struct{}
	// Progress, if set, is called now and then with how many schedules are
	// done, from one goroutine at a time.
	Progress func(done int)

	// Swarm has each schedule draw what is left zero of Nodes, Clients, TTL, Duration
	// and Lock, and timers, number of locks and the calls that are made.
	Swarm bool

	// Guided keeps the schedules that reach states which none before has reached, and
	// runs mutants of them. Mutate is how many of a hundred schedules are: 50 if zero,
	// none if negative. Corpus are schedules that were kept before; they are run first.
	Guided bool
	Mutate int
	Corpus []*Schedule

	nodeTimeout   time.Duration
	retryInterval time.Duration
	locks         int  // how many
	permits       int  // of a semaphore
	resizes       bool // their number changes
	mixedTTL      bool // locks have TTLs of their own
	adopts        bool // who crashed takes its lease up again
	everyCall     bool // TryLock, Do, Inspect and the rest, and not only Lock, Extend and Unlock

	unsafe      seam.Unsafe
	unsafeGuard seam.UnsafeGuard
	rung        *rung         // a naive lock instead of the library
	beside      *rung         // the library, in the schedules that are drawn for this naive lock
	remote      time.Duration // the storage is across the network: for how long a write travels at most
	mute        bool          // masters deliver no messages
	polling     bool          // waiters try again and again instead of queueing
	shortGuard  time.Duration // what the masters are guarded for instead of RestartGuard
	longTTL     time.Duration // of client 1's locks, and its guard, in place of TTL
	split       int           // with how many of the masters client 1 locks; zero: all
	founders    int           // how many of the masters are a group when it begins; zero: all
	stops       int           // code is stopped in the middle once in about so many steps; zero: drawn
	variant     string        // what the masters do wrong
	script      func(dice *stream, cfg *Config) ([]Fault, [][]Action)
}

// Transport is what connects the clients of a simulation with its masters.
type Transport string

const (
	// Fast is a model of the transport. A test holds it equal to the real one.
	Fast Transport = "fast"
	// Production is the real one, of package node, on simulated connections. It
	// is less than half as fast.
	Production Transport = "production"
)

// check sets the defaults and refuses what cannot be simulated. With Swarm, what
// is left open is drawn for each schedule.
func (cfg *Config) check() error {
	setDefault(&cfg.Seeds, 1000)
	if cfg.Guided {
		setDefault(&cfg.Mutate, 50)
	}
	if cfg.Faults.Name == "" {
		cfg.Faults = Assumed
	}
	if cfg.Transport == "" {
		cfg.Transport = Fast
	}
	for i, s := range cfg.Corpus {
		if s.config.Faults.Name != cfg.Faults.Name || cfg.Lock != "" && s.config.Lock != cfg.Lock {
			return fmt.Errorf("simulate: Corpus: schedule %d is of faults %s and of kind %s, and the run of faults %s and of kind %s",
				i+1, s.config.Faults.Name, s.config.Lock, cfg.Faults.Name, cmp.Or(string(cfg.Lock), "any"))
		}
	}
	if !cfg.Swarm {
		cfg.setDefaults()
		return cfg.valid()
	}
	drawn := *cfg
	drawn.setDefaults()
	return drawn.valid()
}

func (cfg *Config) setDefaults() {
	setDefault(&cfg.Nodes, 5)
	setDefault(&cfg.Clients, 3)
	setDefault(&cfg.TTL, time.Second)
	setDefault(&cfg.Duration, time.Minute)
	setDefault(&cfg.RestartGuard, cfg.TTL)
	setDefault(&cfg.ClockGuard, redlock.DefaultClockGuard)
	setDefault(&cfg.nodeTimeout, min(redlock.DefaultNodeTimeout, cfg.TTL/3))
	setDefault(&cfg.retryInterval, redlock.DefaultRetryInterval)
	setDefault(&cfg.locks, 1)
	setDefault(&cfg.Lock, PlainLock)
	setDefault(&cfg.permits, 3)
}

func (cfg *Config) valid() error {
	switch {
	case cfg.Transport != Fast && cfg.Transport != Production:
		return fmt.Errorf("simulate: Transport(%q): must be %s or %s", cfg.Transport, Fast, Production)
	case cfg.Nodes < 1 || cfg.Nodes > 26:
		return fmt.Errorf("simulate: Nodes(%d): must be from 1 to 26", cfg.Nodes)
	case !slices.Contains(LockKinds, cfg.Lock):
		return fmt.Errorf("simulate: Lock(%q): must be one of %s", cfg.Lock, listed(LockKinds))
	case cfg.Clients < 1 || cfg.Clients > 100:
		return fmt.Errorf("simulate: Clients(%d): must be from 1 to 100", cfg.Clients)
	case cfg.TTL < 10*time.Millisecond || cfg.TTL > time.Hour:
		return fmt.Errorf("simulate: TTL(%v): must be from 10ms to 1h", cfg.TTL)
	case cfg.Duration < 0 || cfg.Duration > 24*time.Hour:
		return fmt.Errorf("simulate: Duration(%v): must be from 0 to 24h", cfg.Duration)
	case cfg.Mutate > 100:
		return fmt.Errorf("simulate: Mutate(%d): must be at most 100", cfg.Mutate)
	case cfg.Seeds < 0:
		return fmt.Errorf("simulate: Seeds(%d): must not be negative", cfg.Seeds)
	case cfg.RestartGuard > 0 && cfg.RestartGuard < cfg.TTL:
		return fmt.Errorf("simulate: RestartGuard(%v): must be negative (off) or at least the TTL %v", cfg.RestartGuard, cfg.TTL)
	}
	return nil
}

func setDefault[T int | time.Duration | LockKind](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ttlOf is the TTL of a client's locks.
func (cfg *Config) ttlOf(client int) time.Duration {
	if client == 0 && cfg.longTTL > 0 {
		return cfg.longTTL
	}
	return cfg.TTL
}

// mastersOf are those that a client locks with.
func (cfg *Config) mastersOf(client int, all []*master) []*master {
	if client == 0 && cfg.split > 0 {
		return all[:cfg.split]
	}
	return all
}

// foundersOf are those that are a group when it begins.
func (cfg *Config) foundersOf(all []*master) []*master {
	if cfg.founders > 0 {
		return all[:cfg.founders]
	}
	return all
}

// guard is how careful a client is.
func (cfg *Config) guard(client int) node.GuardConfig {
	hold := max(0, cfg.RestartGuard)
	if hold > 0 {
		hold = max(hold, cfg.ttlOf(client))
	}
	if cfg.shortGuard > 0 {
		hold = cfg.shortGuard
	}
	if hold > 0 {
		hold += drift.Allowance(hold, drift.DefaultFactor) // as redlock.Dial does
	}
	return node.GuardConfig{Hold: hold, ClockTolerance: max(0, cfg.ClockGuard), Unsafe: cfg.unsafeGuard}
}

// Action is one thing that a client does: lock, work, write to the storage,
// unlock.
type Action struct {
	Think    time.Duration `json:"think,omitempty"`    // before
	At       time.Duration `json:"at,omitempty"`       // instead, if not zero: when, on the client's monotonic clock
	Patience time.Duration `json:"patience,omitempty"` // how long it waits for the lock
	Hold     time.Duration `json:"hold,omitempty"`     // how long the work takes
	Renew    bool          `json:"renew,omitempty"`    // the lease is renewed by itself
	Extend   bool          `json:"extend,omitempty"`   // in the middle of the work
	Nested   bool          `json:"nested,omitempty"`   // locks again while it holds the lock
	After    time.Duration `json:"after,omitempty"`    // how long the work goes on after the rest

	Lock    string        `json:"lock,omitempty"`    // which; empty: the only one
	TTL     time.Duration `json:"ttl,omitempty"`     // zero: that of the client
	How     How           `json:"how,omitempty"`     // it takes the lock
	Shorten time.Duration `json:"shorten,omitempty"` // instead of Extend to the TTL: to less, or to more if the TTL is short itself
	Again   bool          `json:"again,omitempty"`   // unlocks a second time
	Inspect bool          `json:"inspect,omitempty"` // asks who holds the lock

	Names     []string `json:"names,omitempty"`     // of a Multi, instead of Lock
	Read      bool     `json:"read,omitempty"`      // and not write
	Downgrade bool     `json:"downgrade,omitempty"` // from writing to reading, in the middle of the work
	Permits   int      `json:"permits,omitempty"`   // how many; zero: one
	Resize    int      `json:"resize,omitempty"`    // instead of all this: to so many permits; zero: none
}

// How is by which method an action takes the lock.
type How string

// The methods.
const (
	ByLock    How = ""
	ByTryLock How = "try"
	ByDo      How = "do"
)

// Schedule is everything that is decided before a run: who does what when, and
// what goes wrong. Together with the seed it determines the run to the last
// bit.
type Schedule struct {
	Seed    uint64     `json:"seed"`
	Dice    uint64     `json:"dice"` // of the network and the clients, beside the seed
	Faults  []Fault    `json:"faults"`
	Actions [][]Action `json:"actions"` // for each caller: caller i is of client i modulo their number
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
	style := newStream(seed, "style")
	pace := style.spread(cfg.TTL/50, cfg.TTL/2)
	work := style.spread(cfg.TTL/50, cfg.TTL)
	callers := cfg.Clients
	if cfg.drawnFor() == nil && style.chance(300) {
		callers *= 2 + style.below(2) // who wait for each other within one client
	}
	for i := range callers {
		s.Actions = append(s.Actions, actions(newStream(seed, "actions", i), cfg, pace, work))
	}
	return s
}

// drawnFor returns the naive lock that schedules are drawn for, if it is one.
func (cfg *Config) drawnFor() *rung { return cmp.Or(cfg.rung, cfg.beside) }

func actions(dice *stream, cfg *Config, pace, work time.Duration) []Action {
	var list []Action
	for at := time.Duration(0); at < cfg.Duration; {
		a := Action{
			Think:    dice.between(0, 4*pace),
			Patience: dice.spread(cfg.TTL/4, 8*cfg.TTL),
			Hold:     dice.between(0, 2*work),
			Renew:    dice.chance(700),
			Extend:   dice.chance(100),
			Nested:   cfg.drawnFor() != nil && cfg.drawnFor().nested && dice.chance(100),
		}
		if dice.chance(100) {
			a.Hold = dice.between(cfg.TTL, 4*cfg.TTL)
		}
		if cfg.locks > 1 && dice.chance(500) {
			a.Lock = lockName + strconv.Itoa(1+dice.below(cfg.locks-1))
		}
		if cfg.mixedTTL && dice.chance(500) {
			a.TTL = max(dice.spread(cfg.TTL/20, cfg.TTL), 10*time.Millisecond, min(2*cfg.nodeTimeout, cfg.TTL))
		}
		if cfg.everyCall {
			a.varyCalls(dice, cfg)
		}
		a.ofKind(dice, cfg)
		list = append(list, a)
		at += a.Think + a.Hold + cfg.TTL/50
	}
	return list
}

// varyCalls draws what the action does beside the usual.
func (a *Action) varyCalls(dice *stream, cfg *Config) {
	switch dice.below(10) {
	case 0, 1:
		a.How = ByTryLock
	case 2:
		a.How = ByDo
	}
	if a.Extend && dice.chance(500) {
		a.Shorten = max(cfg.TTL/2, 10*time.Millisecond)
	}
	a.Again = dice.chance(100)
	a.Inspect = dice.chance(100)
}

// latency draws how good the network is.
func (s *Schedule) latency() latency {
	dice := newStream(s.Seed, "latency") // not of the dice: the network stays what it is
	// A lock that lasts no longer than the answers travel is nobody's.
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
	if every == 0 {
		every = int(dice.spread(30, 3000))
	}
	return preemption{
		every: every,
		short: min(4*time.Millisecond, s.config.TTL/50),
		long:  2 * s.config.TTL,
	}
}

// String lists the faults and how much each client does.
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

// callerName names the i-th caller: the first of each client as its client.
func callerName(i, clients int) string {
	name := clientName(i % clients)
	if i >= clients {
		name += "/" + strconv.Itoa(i/clients+1)
	}
	return name
}
