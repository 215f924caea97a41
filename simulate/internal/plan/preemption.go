package plan

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Preemption is how often the code of a client is stopped in the middle, and for
// how long.
type Preemption struct {
	Every   int           // steps between two stops, about; zero: never
	Where   Stops         // only there
	Short   time.Duration // most are up to that long
	Long    time.Duration // some are, as long as not all is well again
	LongOdd int           // how many of a thousand
	Stalls  int           // at how many of a thousand stops the whole process stands still, too
}

// Stops says where the code of the clients is stopped in the middle, in a schedule that
// stops it at all. A race of a timer with a reply takes a stop in just that timer, which
// stops that may come anywhere hit too seldom.
type Stops string

// Where code may be stopped.
const (
	Everywhere Stops = ""
	InTimers   Stops = "timers"
	InReplies  Stops = "replies"
	InCalls    Stops = "calls"
	InRenewals Stops = "renewals" // where replies to renewals are read
	InAsks     Stops = "asks"     // where those to asks of waiters are
)

// Preemption draws how often code is stopped in the middle.
func (s *Schedule) Preemption() Preemption {
	dice := world.NewDice(s.Seed, "preemption")
	every := s.Config.Stops
	if s.Config.drawnFor() != nil || every == 0 && dice.Chance(500) {
		return Preemption{}
	}
	p := Preemption{
		Every:   every,
		Where:   s.Stops,
		Short:   min(4*time.Millisecond, s.Config.TTL/50),
		Long:    2 * s.Config.TTL,
		LongOdd: 30,
	}
	if stalls := world.NewDice(s.Seed, "stalls"); every == 0 && slices.Contains(s.Config.Faults.Kinds, ClientPause) && stalls.Chance(500) {
		p.Stalls = 100
		if s.Stops == InRenewals {
			p.Stalls = 400 // there are few, and it takes one in just the right place
		}
	}
	switch {
	case every > 0:
	case s.Stops == Everywhere:
		p.Every = int(dice.Spread(30, 3000))
	case s.Stops == InRenewals || s.Stops == InAsks:
		p.Every, p.LongOdd = int(dice.Spread(2, 60)), 300
	default: // there are fewer steps
		p.Every, p.LongOdd = int(dice.Spread(4, 400)), 100
	}
	return p
}
