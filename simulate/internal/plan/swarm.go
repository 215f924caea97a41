package plan

import (
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Swarm: each schedule is of a world of its own, because values that are the
// same in all of them hide what depends on their proportions: with a TTL of a
// heartbeat, whatever happens within a heartbeat happens within a TTL.

// vary returns the configuration of one schedule: what cfg leaves open is drawn.
func (cfg *Config) vary(seed uint64) *Config {
	own := *cfg
	if !cfg.Swarm {
		own.drawGroups(cfg.Nodes, world.NewDice(seed, "groups"))
		return &own
	}
	dice := world.NewDice(seed, "world")
	SetDefault(&own.Nodes, pick(dice, 5, 5, 5, 3, 3, 4, 7))
	SetDefault(&own.Clients, pick(dice, 3, 3, 2, 4, 5))
	SetDefault(&own.TTL, drawTTL(dice))
	SetDefault(&own.Duration, min(max(60*own.TTL, 5*time.Second), time.Minute))
	if dice.Chance(500) {
		own.NodeTimeout = min(dice.Spread(10*time.Millisecond, 200*time.Millisecond), own.TTL/3)
		own.RetryInterval = dice.Spread(10*time.Millisecond, time.Second)
	}
	own.locks = pick(dice, 1, 1, 1, 2, 3)
	own.mixedTTL = dice.Chance(300)
	own.everyCall = dice.Chance(700)
	own.Adopts = world.NewDice(seed, "adopt").Chance(500)
	own.drawLock(world.NewDice(seed, "kind"))
	own.Polling = own.Polling || own.Lock == PlainLock && world.NewDice(seed, "polling").Chance(100)
	if deaf := world.NewDice(seed, "deaf"); deaf.Chance(30) {
		own.Deaf = pick(deaf, own.Nodes, (own.Nodes+1)/2, own.Nodes/2)
	}
	own.Durable = own.Durable || world.NewDice(seed, "durable").Chance(100)
	if rest := world.NewDice(seed, "rest"); own.Rest == 0 && rest.Chance(200) {
		own.Rest = rest.Spread(100*time.Millisecond, 5*time.Second)
	}
	if own.Transport == Mixed {
		own.Transport = Fast
		if world.NewDice(seed, "transport").Chance(slowly) {
			own.Transport = Production
		}
	}
	own.drawGroups(cfg.Nodes, world.NewDice(seed, "groups"))
	own.SetDefaults()
	return &own
}

// slowly is how many of a thousand schedules go over the production transport, which
// takes several times as long.
const slowly = 10

// drawTTL draws one second half of the time, and otherwise from 100 ms to a minute. A shorter
// lease would be nearly all drift allowance.
func drawTTL(dice *world.Dice) time.Duration {
	d := pick(dice, time.Second, time.Second, dice.Spread(10*time.Millisecond, time.Second), dice.Spread(time.Second, time.Minute))
	d = max(d, 100*time.Millisecond)
	if dice.Chance(500) {
		return d.Round(time.Millisecond) // the masters round the others
	}
	return d
}

// pick returns one of the values.
func pick[T any](dice *world.Dice, values ...T) T { return values[dice.Below(len(values))] }
