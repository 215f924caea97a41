package masters

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file is the fenced_*.lua scripts, and the counters of queue.lua, as Go
// code.

// counterLife is how long a counter lives after its last change, in ms.
const counterLife = 7 * 24 * 60 * 60 * 1000

// Counter returns a fencing counter, 0 if the key does not exist.
func (ks *Keyspace) Counter(key string) int64 {
	text, _ := ks.text(key)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (ks *Keyspace) SetCounter(key string, n int64) {
	ks.Store(key, &Entry{Value: strconv.FormatInt(n, 10), Until: ks.Millis() + counterLife})
}

// count moves a counter up, to at least the proposal, in parts of so many microseconds.
func (ks *Keyspace) count(key, proposal string, micros int64) int64 {
	n := ks.above(ks.Counter(key), proposal, micros)
	ks.SetCounter(key, n)
	return n
}

// above returns the next count after c, and at least the proposal, which is a client's
// clock: this master's counts instead, if that and the counter are more than a day behind.
func (ks *Keyspace) above(c int64, proposal string, micros int64) int64 {
	least, _ := strconv.ParseInt(proposal, 10, 64)
	if ks.Variant == BelievesClocks {
		return int64(max(float64(c)+1, float64(least))) // numbers of Lua
	}
	day := int64(24*time.Hour/time.Microsecond) / micros
	if clock := ks.Now() / micros; least > c+day && least > clock+day {
		least = clock
	}
	n := max(c+1, least)
	if n >= 1<<53 {
		panic("simulate: the model does not know the end of a counter")
	}
	return n
}

// raise moves a counter up to token, and reports whether it was below.
func (ks *Keyspace) raise(key, token string) bool {
	n, _ := strconv.ParseInt(token, 10, 64)
	if ks.Counter(key) >= n {
		return false
	}
	ks.SetCounter(key, n)
	return true
}

func (ks *Keyspace) fencedAcquire(keys, args []string) (any, *wire.ServerError) {
	taken, err := ks.set(keys[0], []string{args[0], "NX", "PX", args[1]})
	switch {
	case err != nil:
		return nil, err
	case taken != nil:
		return ks.count(keys[1], args[2], 1), nil
	}
	return []any{ks.pttl(keys[0]), int64(0), ks.Counter(keys[1])}, nil
}

func (ks *Keyspace) fencedRaise(keys, args []string) (any, *wire.ServerError) {
	n, err := ks.ours(keys[0], args[0])
	switch {
	case err != nil:
		return nil, err
	case n != 1 && ks.Variant == ConfirmsAnything:
		return int64(1), nil
	case n != 1:
		return int64(-1), nil
	case ks.raise(keys[1], args[1]):
		return int64(1), nil
	}
	return int64(0), nil
}

func (ks *Keyspace) fencedExtend(keys, args []string) (any, *wire.ServerError) {
	if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
		return reply(n, err)
	}
	ks.raise(keys[1], args[2])
	return ks.lengthen(keys[0], args[1])
}

func (ks *Keyspace) fencedRepair(keys, args []string) (any, *wire.ServerError) {
	taken, err := ks.set(keys[0], []string{args[0], "NX", "PX", args[1]})
	if taken != nil && err == nil {
		ks.raise(keys[1], args[2])
	}
	return taken, err
}

// inherit is inherit.lua.
func (ks *Keyspace) inherit(keys, args []string) (any, *wire.ServerError) {
	for i, counter := range keys {
		ks.raise(counter, args[i])
	}
	return int64(1), nil
}
