package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Latency is how long messages take on a healthy network: usually from Base to twice Base, and
// sometimes much longer. In the tail, twice the delay is half as likely.
type Latency struct {
	Base time.Duration
	tail int           // thousandths of all messages
	max  time.Duration // of the tail
}

func (l Latency) Draw(dice *world.Dice) time.Duration {
	d := dice.Between(l.Base, 2*l.Base)
	if l.tail > 0 && dice.Chance(l.tail) {
		late := 4 * time.Millisecond
		for b := dice.Bits(); b&1 == 1 && late < l.max; b >>= 1 {
			late *= 2
		}
		d += dice.Between(late/2, late)
	}
	return min(d, l.max)
}

// Latency draws how good the network is.
func (s *Schedule) Latency() Latency {
	dice := world.NewDice(s.Seed, "latency") // without Dice: other dice do not make another network
	// No client gets a lock whose validity ends before the answers are back.
	far := min(4*time.Millisecond, s.Config.TTL/50, s.Config.NodeTimeout/12)
	l := Latency{Base: dice.Spread(min(far, 100*time.Microsecond), far), max: 3 * time.Second}
	if tail := s.Config.Faults.TailThousandths; tail > 0 && dice.Chance(500) {
		l.tail = 1 + dice.Below(tail)
	}
	return l
}
