package simulate

import "time"

// Swarm: each schedule is of a world of its own, because values that are the
// same in all of them hide what depends on their proportions: with a TTL of a
// heartbeat, whatever happens within a heartbeat happens within a TTL.

// vary returns the configuration of one schedule: what cfg leaves open is drawn.
func (cfg *Config) vary(seed uint64) *Config {
	own := *cfg
	if !cfg.Swarm {
		return &own
	}
	dice := newStream(seed, "world")
	setDefault(&own.Nodes, pick(dice, 5, 5, 5, 3, 3, 4, 7))
	setDefault(&own.Clients, pick(dice, 3, 3, 2, 4, 5))
	setDefault(&own.TTL, drawTTL(dice))
	setDefault(&own.Duration, min(max(60*own.TTL, 5*time.Second), time.Minute))
	if dice.chance(500) {
		own.nodeTimeout = min(dice.spread(10*time.Millisecond, 200*time.Millisecond), own.TTL/3)
		own.retryInterval = dice.spread(10*time.Millisecond, time.Second)
	}
	own.locks = pick(dice, 1, 1, 1, 2, 3)
	own.mixedTTL = dice.chance(300)
	own.everyCall = dice.chance(700)
	own.adopts = newStream(seed, "adopt").chance(500)
	own.drawLock(newStream(seed, "kind"))
	own.polling = own.polling || own.Lock == PlainLock && newStream(seed, "polling").chance(100)
	if deaf := newStream(seed, "deaf"); deaf.chance(30) {
		own.deaf = pick(deaf, own.Nodes, (own.Nodes+1)/2, own.Nodes/2)
	}
	own.durable = own.durable || newStream(seed, "durable").chance(100)
	if own.Transport == Mixed {
		own.Transport = Fast
		if newStream(seed, "transport").chance(slowly) {
			own.Transport = Production
		}
	}
	own.setDefaults()
	return &own
}

// slowly is how many of a thousand schedules go over the production transport, which
// takes several times as long.
const slowly = 10

// drawTTL draws mostly one second, and else anything from 100 ms to a minute: a shorter lease is nearly all drift allowance.
func drawTTL(dice *stream) time.Duration {
	d := pick(dice, time.Second, time.Second, dice.spread(10*time.Millisecond, time.Second), dice.spread(time.Second, time.Minute))
	d = max(d, 100*time.Millisecond)
	if dice.chance(500) {
		return d.Round(time.Millisecond) // the masters round the others
	}
	return d
}

// pick returns one of the values.
func pick[T any](dice *stream, values ...T) T { return values[dice.below(len(values))] }
