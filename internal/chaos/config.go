package chaos

import (
	"fmt"
	"time"
)

// Config says what a run is made of. The same Config has the same faults; what
// they meet depends on the machine.
type Config struct {
	Seed      uint64
	Duration  time.Duration // of the faults; calm comes behind
	Masters   int
	Clients   int
	Kinds     []*Kind
	Workloads []*Workload
	Unguarded bool   // without the restart guard: two holders are to be expected
	Dir       string // where journals and logs go

	// ClientCommand is the program and the arguments that call ServeClient.
	ClientCommand []string
	// Progress, unless nil, is called now and then with the share of the run that is over.
	Progress func(share float64, what string)
}

// The clients' options. Two TTLs, and so two restart guards, on the same
// masters: each client honours the longest (S5).
const (
	shortTTL    = time.Second
	longTTL     = 2 * time.Second
	nodeTimeout = 100 * time.Millisecond
)

func (c *Config) ttlOf(client int) time.Duration {
	if client%2 == 0 {
		return shortTTL
	}
	return longTTL
}

func (c *Config) longestTTL() time.Duration { return longTTL }

// durable masters have an append-only file, adjustable ones a clock that can be
// set.
func (c *Config) durable(master int) bool    { return master%5 == 1 || master%5 >= 3 }
func (c *Config) adjustable(master int) bool { return master%5 == 2 || master%5 == 3 }

// calm is how long clients and masters are left alone at the end: until every
// quarantine is over and every caller can have had a turn.
func (c *Config) calm() time.Duration { return c.recovery() + 3*c.longestTTL() }

// recovery is how long after the last fault callers may still wait in vain.
func (c *Config) recovery() time.Duration { return 2*c.longestTTL() + 3*time.Second }

func (c *Config) check() error {
	switch {
	case c.Duration < 5*time.Second:
		return fmt.Errorf("duration %v: must be at least 5s", c.Duration)
	case c.Masters < 3 || c.Masters > 9:
		return fmt.Errorf("%d masters: must be from 3 to 9", c.Masters)
	case c.Clients < 2 || c.Clients > 20:
		return fmt.Errorf("%d clients: must be from 2 to 20", c.Clients)
	case len(c.Workloads) == 0:
		return fmt.Errorf("no workloads: want at least one")
	}
	return nil
}
