package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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

	// RestartGuard is for how long a master that came back without its memory
	// may not grant. Zero: as long as the TTL. Negative: off.
	RestartGuard time.Duration
	// ClockGuard is by how much a master's clock may step before it may not
	// grant. Zero: redlock.DefaultClockGuard. Negative: off.
	ClockGuard time.Duration
	// Options are given to every redlock.Client, after those that the
	// simulation needs.
	Options []redlock.Option
	// Progress, if set, is called now and then with how many schedules are
	// done, from one goroutine at a time.
	Progress func(done int)

	unsafe     seam.Unsafe
	rung       *rung         // a naive lock instead of the library
	remote     time.Duration // the storage is across the network: for how long a write travels at most
	shortGuard time.Duration // what the masters are guarded for instead of RestartGuard
	script     func(dice *stream, cfg *Config) ([]Fault, [][]Action)
}

// check sets the defaults and refuses what cannot be simulated.
func (cfg *Config) check() error {
	setDefault(&cfg.Nodes, 5)
	setDefault(&cfg.Clients, 3)
	setDefault(&cfg.TTL, time.Second)
	setDefault(&cfg.Duration, time.Minute)
	setDefault(&cfg.Seeds, 1000)
	setDefault(&cfg.RestartGuard, cfg.TTL)
	setDefault(&cfg.ClockGuard, redlock.DefaultClockGuard)
	if cfg.Faults.Name == "" {
		cfg.Faults = Assumed
	}
	switch {
	case cfg.Nodes < 1 || cfg.Nodes > 26:
		return fmt.Errorf("simulate: Nodes(%d): must be from 1 to 26", cfg.Nodes)
	case cfg.Clients < 1 || cfg.Clients > 100:
		return fmt.Errorf("simulate: Clients(%d): must be from 1 to 100", cfg.Clients)
	case cfg.TTL < 10*time.Millisecond || cfg.TTL > time.Hour:
		return fmt.Errorf("simulate: TTL(%v): must be from 10ms to 1h", cfg.TTL)
	case cfg.Duration < 0 || cfg.Duration > 24*time.Hour:
		return fmt.Errorf("simulate: Duration(%v): must be from 0 to 24h", cfg.Duration)
	case cfg.Seeds < 0:
		return fmt.Errorf("simulate: Seeds(%d): must not be negative", cfg.Seeds)
	case cfg.RestartGuard > 0 && cfg.RestartGuard < cfg.TTL:
		return fmt.Errorf("simulate: RestartGuard(%v): must be negative (off) or at least the TTL %v", cfg.RestartGuard, cfg.TTL)
	}
	return nil
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func (cfg *Config) guard() node.GuardConfig {
	hold := max(0, cfg.RestartGuard)
	if cfg.shortGuard > 0 {
		hold = cfg.shortGuard
	}
	return node.GuardConfig{Hold: hold, ClockTolerance: max(0, cfg.ClockGuard)}
}

// patience is how long after the last fault a client may wait for a lock: what
// was left behind has expired by then, and quarantines are over.
func (cfg *Config) patience() time.Duration {
	return 4*cfg.TTL + 2*max(0, cfg.RestartGuard) + 10*time.Second
}

// Action is one thing that a client does: lock, work, write to the storage,
// unlock.
type Action struct {
	Think    time.Duration `json:"think"`    // before
	At       time.Duration `json:"at"`       // instead, if not zero: when, on the client's monotonic clock
	Patience time.Duration `json:"patience"` // how long it waits for the lock
	Hold     time.Duration `json:"hold"`     // how long the work takes
	Renew    bool          `json:"renew"`    // the lease is renewed by itself
	Extend   bool          `json:"extend"`   // in the middle of the work
	Nested   bool          `json:"nested"`   // locks again while it holds the lock
}

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
	s := &Schedule{Seed: seed, config: cfg}
	if cfg.script != nil {
		own := *cfg // a script may set its own duration
		s.config = &own
		s.Faults, s.Actions = cfg.script(newStream(seed, "script"), &own)
		return s
	}
	s.Faults = cfg.Faults.draw(newStream(seed, "faults"), cfg)
	style := newStream(seed, "style")
	pace := style.spread(cfg.TTL/50, cfg.TTL/2)
	work := style.spread(cfg.TTL/50, cfg.TTL)
	callers := cfg.Clients
	if cfg.rung == nil && style.chance(300) {
		callers *= 2 + style.below(2) // who wait for each other within one client
	}
	for i := range callers {
		s.Actions = append(s.Actions, actions(newStream(seed, "actions", i), cfg, pace, work))
	}
	return s
}

func actions(dice *stream, cfg *Config, pace, work time.Duration) []Action {
	var list []Action
	for at := time.Duration(0); at < cfg.Duration; {
		a := Action{
			Think:    dice.between(0, 4*pace),
			Patience: dice.spread(cfg.TTL/4, 8*cfg.TTL),
			Hold:     dice.between(0, 2*work),
			Renew:    dice.chance(700),
			Extend:   dice.chance(100),
			Nested:   cfg.rung != nil && cfg.rung.nested && dice.chance(100),
		}
		if dice.chance(100) {
			a.Hold = dice.between(cfg.TTL, 4*cfg.TTL)
		}
		list = append(list, a)
		at += a.Think + a.Hold + cfg.TTL/50
	}
	return list
}

// latency draws how good the network is.
func (s *Schedule) latency() latency {
	dice := newStream(s.Seed, "latency") // not of the dice: the network stays what it is
	l := latency{base: dice.spread(100*time.Microsecond, 4*time.Millisecond), max: 3 * time.Second}
	if tail := s.config.Faults.TailThousandths; tail > 0 && dice.chance(500) {
		l.tail = 1 + dice.below(tail)
	}
	return l
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
