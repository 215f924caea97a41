// Package explore tries every order of what can happen in small worlds: two or three
// clients of the production code and up to three masters, with a message, a timer or a
// fault as each step. The simulator draws large schedules by chance; this package leaves
// nothing out of small ones.
package explore

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/simulate"
)

// Stats counts what an exploration did.
type Stats struct {
	Runs    int // orders that were run
	Pruned  int // of them, given up because they were equivalent to another
	Bounded int // choices that were left out because of the bound
	Endless int // runs that were given up because they became too long
	Steps   int
	Depth   int // steps of the longest run
}

// Exploration is the result of exploring a small world.
type Exploration struct {
	World *World
	Stats
	Complete  bool                // every order was tried, or an equivalent order
	Violation *simulate.Violation // the first that was found, or nil
	Told      []string            // what happened until then, step by step
	Took      time.Duration
}

// Config says how far an exploration goes. The zero Config tries every order.
type Config struct {
	// Bound, if above zero, is how often a run may leave its usual course, in
	// which every message arrives in the order of sending and nothing goes wrong.
	Bound int
	// Runs, if above zero, is after how many runs to stop.
	Runs int
	// Interrupt ends the exploration early when it is closed. The result then covers only the runs
	// before that.
	Interrupt <-chan struct{}
	// Progress, if set, is called now and then.
	Progress func(Stats)
}

// Explore tries every order of what can happen in a small world: every message
// delivered, answered or lost, every timer and every end of a TTL, and every
// moment for its faults. It ends with the first violation.
func (w *World) Explore(cfg Config) *Exploration {
	began := time.Now() // for the report; no run reads it
	s := &search{world: w, bound: cfg.Bound}
	if cfg.Bound <= 0 {
		s.bound = -1
	}
	e := &Exploration{World: w}
	for {
		found, more := s.next()
		e.Violation = found
		if found != nil {
			e.Told = s.tell()
		}
		if !more || found != nil || cfg.enough(s.stats.Runs) {
			e.Complete = !more && s.stats.Bounded == 0 && s.stats.Endless == 0
			break
		}
		if cfg.Progress != nil && s.stats.Runs%1024 == 0 {
			cfg.Progress(s.stats)
		}
	}
	e.Stats = s.stats
	e.Took = time.Since(began)
	return e
}

// enough reports whether no more is wanted after so many runs.
func (cfg *Config) enough(runs int) bool {
	select {
	case <-cfg.Interrupt:
		return true
	default:
		return cfg.Runs > 0 && runs >= cfg.Runs
	}
}

// tell says what happened in the last run.
func (s *search) tell() []string {
	var list []string
	for i, st := range s.steps {
		list = append(list, fmt.Sprintf("%3d  %s", i+1, st.strand))
	}
	return list
}
