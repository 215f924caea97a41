package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
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
	Workers  int           // how many run in parallel; one for each core if zero
	FailFast bool          // end with the first schedule in which a promise breaks
	Lock     LockKind      // PlainLock if empty

	// RestartGuard is how long a master that lost its memory may not grant.
	// Zero: as long as the TTL. Negative: off.
	RestartGuard time.Duration
	// ClockGuard: clients watch the masters' clocks, unless it is negative.
	ClockGuard time.Duration
	// Transport is what connects clients with masters. If empty: Mixed in a swarm, and
	// Fast otherwise.
	Transport Transport
	// Options are given to every redlock.Client. The simulation sets client id,
	// clock, logger, observer and seams itself.
	Options []redlock.Option
	// Interrupt ends the run early when it is closed. The report is then about the
	// schedules that were run.
	Interrupt <-chan struct{}
	// Progress, if set, is called now and then with the number of schedules that
	// are done. Calls do not overlap.
	Progress func(done int)

	// Swarm makes each schedule draw whichever of Nodes, Clients, TTL, Duration and
	// Lock are zero, and timers, the number of locks, and which calls are made.
	Swarm bool

	NodeTimeout   time.Duration
	RetryInterval time.Duration
	Groups        int  // of masters, each of which has some of the names; zero: one has all
	locks         int  // how many
	Permits       int  // of a semaphore
	Resizes       bool // their number changes
	mixedTTL      bool // locks have TTLs of their own
	Usual         bool // clients have no habits
	Adopts        bool // a client that crashed adopts its lease when it is back
	everyCall     bool // also TryLock, Do, Inspect and the rest, beside Lock, Extend and Unlock

	Unsafe     seam.Unsafe
	Lacks      weaker.Lacks
	Rung       *Rung         // a naive lock instead of the library
	Beside     *Rung         // the library runs, in the schedules drawn for this naive lock
	Remote     time.Duration // how long a write to the storage is under way at most; zero: the storage is local
	Mute       bool          // masters deliver no messages
	Polling    bool          // waiters poll instead of queueing
	Deaf       int           // at so many masters clients may not subscribe
	ShortGuard time.Duration // replaces RestartGuard, and may be shorter than the TTL
	Unsettled  time.Duration // see guard.Config.Unsettled
	Durable    bool          // masters lose nothing when they restart, and clients know
	Rest       time.Duration // for how long nobody uses a client that rests; zero: as by default
	longTTL    time.Duration // replaces TTL for client 1, and makes its guard as long
	split      int           // how many of the masters client 1 locks with; zero: all
	founders   int           // how many of the masters are a group at the start; zero: all
	Stops      int           // code is stopped in the middle about once in so many steps; zero: drawn
	Variant    string        // the wrong rule that masters follow; empty: none
	Script     func(dice *world.Dice, cfg *Config) ([]Fault, [][]Action)
}

// Transport is what connects the clients of a simulation with its masters.
type Transport string

const (
	// Fast is a model of the transport. A test holds it equal to the real one.
	Fast Transport = "fast"
	// Production is package node's own transport, on simulated connections. It is
	// less than half as fast.
	Production Transport = "production"
	// Mixed is Production in a few schedules of a swarm, and Fast in the others.
	Mixed Transport = "mixed"
)

// Check sets the defaults and refuses what cannot be simulated. With Swarm it
// leaves open what each schedule draws.
func (cfg *Config) Check() error {
	SetDefault(&cfg.Seeds, 1000)
	if cfg.Faults.Name == "" {
		cfg.Faults = Assumed
	}
	if cfg.Transport == "" && cfg.Swarm {
		cfg.Transport = Mixed
	}
	if cfg.Transport == "" {
		cfg.Transport = Fast
	}
	if !cfg.Swarm {
		cfg.SetDefaults()
		return cfg.valid()
	}
	drawn := *cfg
	drawn.SetDefaults()
	return drawn.valid()
}

func (cfg *Config) SetDefaults() {
	SetDefault(&cfg.Nodes, 5)
	SetDefault(&cfg.Clients, 3)
	SetDefault(&cfg.TTL, time.Second)
	SetDefault(&cfg.Duration, time.Minute)
	SetDefault(&cfg.RestartGuard, cfg.TTL)
	SetDefault(&cfg.ClockGuard, defaults.ClockGuard)
	SetDefault(&cfg.NodeTimeout, min(defaults.NodeTimeout, cfg.TTL/3))
	SetDefault(&cfg.RetryInterval, defaults.RetryInterval)
	SetDefault(&cfg.locks, 1)
	SetDefault(&cfg.Lock, PlainLock)
	SetDefault(&cfg.Permits, 3)
}

// leastTTL is about the shortest TTL: a shorter one leaves no validity, where
// clients watch the masters' clocks.
const leastTTL = 25 * time.Millisecond

func (cfg *Config) valid() error {
	switch {
	case cfg.Transport == Mixed && !cfg.Swarm:
		return fmt.Errorf("simulate: Transport(%q): must be %s or %s without Swarm", cfg.Transport, Fast, Production)
	case cfg.Transport != Fast && cfg.Transport != Production && cfg.Transport != Mixed:
		return fmt.Errorf("simulate: Transport(%q): must be %s, %s or %s", cfg.Transport, Fast, Production, Mixed)
	case cfg.Nodes < 1 || cfg.Nodes > 26:
		return fmt.Errorf("simulate: Nodes(%d): must be from 1 to 26", cfg.Nodes)
	case cfg.Lock == GroupsLock && cfg.Groups == 0 && (cfg.Nodes < 3 || cfg.Nodes > 8):
		return fmt.Errorf("simulate: Nodes(%d): must be from 3 to 8, of each group", cfg.Nodes)
	case !slices.Contains(LockKinds, cfg.Lock):
		return fmt.Errorf("simulate: Lock(%q): must be one of %s", cfg.Lock, listed(LockKinds))
	case cfg.Clients < 1 || cfg.Clients > 100:
		return fmt.Errorf("simulate: Clients(%d): must be from 1 to 100", cfg.Clients)
	case cfg.ClockGuard >= 0 && cfg.TTL < leastTTL || cfg.TTL < 10*time.Millisecond || cfg.TTL > time.Hour:
		return fmt.Errorf("simulate: TTL(%v): must be from %v to 1h", cfg.TTL, leastTTL)
	case cfg.Duration < 0 || cfg.Duration > 24*time.Hour:
		return fmt.Errorf("simulate: Duration(%v): must be from 0 to 24h", cfg.Duration)
	case cfg.Seeds < 0:
		return fmt.Errorf("simulate: Seeds(%d): must not be negative", cfg.Seeds)
	case cfg.RestartGuard > 0 && cfg.RestartGuard < cfg.TTL:
		return fmt.Errorf("simulate: RestartGuard(%v): must be negative (off) or at least the TTL %v", cfg.RestartGuard, cfg.TTL)
	}
	return nil
}

func SetDefault[T int | time.Duration | LockKind](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// TTLOf returns the TTL of a client's locks.
func (cfg *Config) TTLOf(client int) time.Duration {
	if client == 0 && cfg.longTTL > 0 {
		return cfg.longTTL
	}
	return cfg.TTL
}

// MastersOf returns how many of the masters a client locks with.
func (cfg *Config) MastersOf(client int) int {
	if client == 0 && cfg.split > 0 {
		return cfg.split
	}
	return cfg.Nodes
}

// FoundersOf returns how many of the masters are a group at the start.
func (cfg *Config) FoundersOf() int {
	if cfg.founders > 0 {
		return cfg.founders
	}
	return cfg.Nodes
}

// Guard returns the settings of a client's restart and clock guards.
func (cfg *Config) Guard(client int) guard.Config {
	hold := max(0, cfg.RestartGuard)
	if hold > 0 {
		hold = max(hold, cfg.TTLOf(client))
	}
	if cfg.ShortGuard > 0 {
		hold = cfg.ShortGuard
	}
	if hold > 0 {
		hold += drift.Allowance(hold, drift.DefaultFactor) // as redlock.Dial does
	}
	g := guard.Config{Hold: hold, Durable: cfg.Durable, Unsettled: cfg.Unsettled}
	if cfg.ClockGuard > 0 {
		g.ClockTolerance = drift.Tolerance
	}
	return g
}

// drawnFor returns the naive lock that schedules are drawn for, or nil.
func (cfg *Config) drawnFor() *Rung { return cmp.Or(cfg.Rung, cfg.Beside) }

// Unnoticed is what every validity gives up for clocks that are set forward unnoticed.
func (cfg *Config) Unnoticed() time.Duration {
	if cfg.ClockGuard < 0 {
		return 0
	}
	return drift.Unnoticed
}

// Extended returns the TTL that an action extends its lock to.
func (cfg *Config) Extended(a Action) time.Duration { return cmp.Or(a.Shorten, cfg.TTLFor(a)) }

// TTLFor returns the TTL of an action's lock.
func (cfg *Config) TTLFor(a Action) time.Duration { return cmp.Or(a.TTL, cfg.TTL) }
