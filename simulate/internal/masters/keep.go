package masters

import (
	"github.com/quorumlock/quorumlock/node/wire"
)

// Kept is what stands before the value of a lock that stays although it was released.
const Kept = "!"

// This file models keep.lua, and what release.lua does with a lock that is kept.

// keep has the lock stay for some time, even if it is released before.
func (ks *Keyspace) keep(keys, args []string) (any, *wire.ServerError) {
	if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
		return reply(n, err)
	}
	if ks.Variant == KeepsNothing {
		return int64(1), nil
	}
	ks.Store(keys[1], &Entry{Value: args[0], Until: ks.Millis() + millis(args[1])})
	return ks.lengthen(keys[0], args[1])
}

// rest returns for how many milliseconds the lock of that holder stays although it is
// released.
func (ks *Keyspace) rest(lock string, q QueueKeys, holder, may string) int64 {
	key := wire.Queue{Order: q.Order, Marker: q.Marker}.Kept()
	stored, _ := ks.text(key)
	left := ks.pttl(key)
	ks.del([]string{key})
	switch {
	case may != wire.KeepArg, ks.Variant == ReleasesKept:
		return 0
	case stored == holder:
		return left
	case ks.Variant == KeepsLonger:
		return ks.pttl(lock)
	}
	return 0
}

// call has the first waiters that are still there ask, and so learn when the lock ends: one of each
// of so many clients, and so many of the first.
func (ks *Keyspace) call(lock string, q QueueKeys, many int) (called int) {
	clients, behind := map[string]bool{}, 0
	for len(clients) < many && behind < 512 {
		waiter, _, _, value := ks.firstBehind(q, behind)
		if waiter == "" {
			break
		}
		client := channelOf(q.Marker, waiter)
		switch {
		case waiter == pause, clients[client] && behind >= many:
			behind++
		case ks.tell(lock, q.Marker, waiter, value, ":t"):
			clients[client] = true
			behind++
		default:
			ks.unqueue(q, waiter)
		}
		if ks.Variant == CallsOne && behind == 1 {
			break
		}
	}
	return len(clients)
}
